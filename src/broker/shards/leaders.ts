// Who leads which shard, as far as this broker has heard. The newest term wins; hints speed things up and nothing rests on
// them: whoever is asked by mistake says so.

import type { ShardLeader } from '../../wire/peer/types.ts'

export class LeaderBook {
  private readonly known: (ShardLeader | undefined)[]
  private readonly onNews: (shard: number) => void

  /** `onNews`: a leader of a newer term is known. */
  constructor(shards: number, onNews: (shard: number) => void) {
    this.known = Array.from({ length: shards })
    this.onNews = onNews
  }

  get(shard: number): ShardLeader | undefined {
    return this.known[shard]
  }

  note(shard: number, leader: ShardLeader | undefined): void {
    if (leader === undefined || leader.term <= (this.known[shard]?.term ?? 0)) return
    this.known[shard] = leader
    this.onNews(shard)
  }
}

// Which segments this broker leads, by shard, and which it cannot go on with: kept as it changes, since it is asked for all the
// time and most brokers have many ranges in which nothing happens.

import type { TopicId } from '../../model/ids.ts'
import type { RangeCopy } from '../range/copy.ts'

export class Census {
  private readonly shardOf: (topicId: TopicId) => number
  private readonly byShard = new Map<number, Set<RangeCopy>>()
  readonly unfit: Set<RangeCopy> = new Set()

  constructor(shardOf: (topicId: TopicId) => number) {
    this.shardOf = shardOf
  }

  get shards(): IterableIterator<number> {
    return this.byShard.keys()
  }

  /** What the copy is now. */
  note(copy: RangeCopy, leads: boolean): void {
    const shard = this.shardOf(copy.key.topicId)
    const led = this.byShard.get(shard)
    if (leads) this.byShard.set(shard, (led ?? new Set<RangeCopy>()).add(copy))
    else if (led?.delete(copy) === true && led.size === 0) this.byShard.delete(shard)
    const fenced = copy.status === 'live' && (copy.fenced || copy.fencedHere)
    if (copy.status === 'broken' || fenced) this.unfit.add(copy)
    else this.unfit.delete(copy)
  }
}

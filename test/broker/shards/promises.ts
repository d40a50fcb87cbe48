// What brokers have said of their disks, and whether it is there when they start again:
//
//   a vote            the term, and for whom
//   an acknowledgement  the term, and the log up to where it agrees with the leader's
//
// Whatever a crash took, a member that has said so and forgot it would help to elect, or to commit, against its own word.

import { restoreShard } from '../../../src/broker/shards/records.ts'
import type { Message } from '../../../src/model/raft.ts'
import type { Journal } from '../../../src/storage/journal/journal.ts'

interface Promised {
  readonly term: number
  /** In this term. */
  vote: string | undefined
  match: number
}

export class Promises {
  /** By member and shard. */
  private readonly all = new Map<string, Promised>()

  said(shard: number, message: Message): void {
    const { kind, from, term } = message
    if (kind === 'vote' && !message.pre) this.note(shard, from, term).vote = from
    else if (kind === 'vote-answer' && !message.pre && message.granted) {
      this.note(shard, from, term).vote = message.to
    } else if (kind === 'append-answer' && message.result.ok) {
      const promised = this.note(shard, from, term)
      promised.match = Math.max(promised.match, message.result.match ?? 0)
    }
  }

  private note(shard: number, member: string, term: number): Promised {
    const key = `${member} ${shard}`
    const known = this.all.get(key)
    if (known !== undefined && known.term >= term) return known.term === term ? known : { ...known }
    const promised = { term, vote: undefined, match: 0 }
    this.all.set(key, promised)
    return promised
  }

  /** What a start finds less than its broker has said. */
  broken(member: string, shard: number, { recovered }: Journal): string | undefined {
    const promised = this.all.get(`${member} ${shard}`)
    if (promised === undefined) return undefined
    const found = recovered.get(shard) ?? { snapshot: undefined, records: [] }
    const { hardState, snapshot, entries } = restoreShard(shard, found)
    const { term, vote, match } = promised
    const who = `${member} in shard ${shard}`
    if (hardState.term < term) return `${who} spoke in term ${term}, and knows ${hardState.term}`
    // In a later term its log may rightly have been cut.
    if (hardState.term > term) return undefined
    if (vote !== undefined && hardState.vote !== vote) return `${who} forgot its vote in ${term}`
    const end = Math.max(snapshot?.index ?? 0, entries.at(-1)?.index ?? 0)
    if (end >= match) return undefined
    return `${who} acknowledged entry ${match} in term ${term}, and has ${end}`
  }
}

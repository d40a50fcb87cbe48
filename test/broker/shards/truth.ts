// What was asked, what was answered, and what follows from both:
//
//   a change that was answered is in every copy, once, and for ever; one that was refused is in none
//   copies agree where they have come equally far
//   a copy that is fresh has all that was answered before it was asked
//   an id is given once
//   what a broker has said of its disk is there when it starts again (promises.ts)

import { toHex } from '../../../src/base/bytes.ts'
import { EastGuardError } from '../../../src/base/errors.ts'
import type { ShardedLog } from '../../../src/broker/metadata/sharded-log.ts'
import { encodeSnapshot } from '../../../src/core/metadata/snapshot.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import type { Entry, Message } from '../../../src/model/raft.ts'
import type { PeerMessage } from '../../../src/wire/peer/types.ts'
import { Promises } from './promises.ts'

/** What is known of a change: nobody has said, it was made, or it will never be. */
type Outcome = 'open' | 'made' | 'never'

export interface TopicTruth {
  readonly topicId: TopicId
  readonly name: string
  created: Outcome
  /** Deletions that may take effect, or have. */
  deletions: number
  deleted: boolean
}

export interface Expected {
  readonly there: readonly TopicTruth[]
  readonly gone: readonly TopicTruth[]
}

/** Rejections that promise that nothing has happened and nothing will. */
const NEVER: ReadonlySet<string> = new Set([
  'METADATA_UNAVAILABLE',
  'STORAGE_FULL',
  'TOO_MANY_REQUESTS',
])

export function isNever(error: unknown): boolean {
  return error instanceof EastGuardError && NEVER.has(error.code)
}

export class Truth {
  readonly topics: Map<TopicId, TopicTruth> = new Map<TopicId, TopicTruth>()
  readonly violations: string[] = []
  readonly promises: Promises = new Promises()
  answered = 0
  freshReads = 0
  /** By shard and index. */
  private readonly states = new Map<string, string>()
  /** By shard, index and term: its proposal, and the term of the one before. */
  private readonly entries = new Map<string, { readonly id: string; readonly before: number }>()
  private readonly askedBy = new Map<string, string>()
  private readonly ids: [number, number][] = []

  violated(what: string): void {
    this.violations.push(what)
  }

  /** Of one process, at any time. */
  look(log: ShardedLog, broker: string): void {
    for (let shard = 0; shard < log.shards.count; shard++) {
      const { state, appliedIndex } = log.shards.copyOf(shard)
      if (appliedIndex === 0) continue
      const at = `${shard} ${appliedIndex}`
      const digest = toHex(encodeSnapshot(state))
      const known = this.states.get(at)
      if (known === undefined) this.states.set(at, digest)
      else if (known !== digest)
        this.violated(`${broker} differs in shard ${shard} at ${appliedIndex}`)
    }
  }

  expected(): Expected {
    const all = [...this.topics.values()]
    return {
      there: all.filter(({ created, deletions }) => created === 'made' && deletions === 0),
      gone: all.filter(({ created, deleted }) => deleted || created === 'never'),
    }
  }

  /** The copy knows what was expected before; `there` may be under deletion since. */
  check(log: ShardedLog, { there, gone }: Expected, who: string): void {
    for (const { topicId, name, deletions } of there) {
      if (deletions > 0 || log.state.topics.has(topicId)) continue
      this.violated(`${who} lacks ${name} ${topicId}, which was created`)
    }
    for (const { topicId, name } of gone) {
      if (log.state.topics.has(topicId))
        this.violated(`${who} has ${name} ${topicId}, which is gone`)
    }
  }

  gaveIds(first: number, count: number): void {
    for (const [other, many] of this.ids) {
      if (first < other + many && other < first + count)
        this.violated(`ids from ${first} were given twice`)
    }
    this.ids.push([first, count])
  }

  // What is seen on links: the logs, and the numbers of what is asked.

  /** `start`: a broker and which start of it. */
  sent(start: string, messages: readonly PeerMessage[]): void {
    for (const message of messages) {
      if (message.kind === 'raft') this.sentRaft(message.shard, message.message)
      else if (message.kind === 'read') this.sentNumber(start, `read ${message.id}`)
      else if (message.kind === 'propose') this.sentNumber(start, `proposal ${message.number}`)
    }
  }

  private sentRaft(shard: number, message: Message): void {
    this.promises.said(shard, message)
    if (message.kind !== 'append') return
    let before = message.prevTerm
    for (const entry of message.entries) {
      this.entries.set(`${shard} ${entry.index} ${entry.term}`, { id: idOf(entry), before })
      before = entry.term
    }
  }

  /** What is answered late to an earlier start must not be an answer to this one. */
  private sentNumber(start: string, what: string): void {
    const [broker] = start.split(' ')
    const known = this.askedBy.get(`${broker} ${what}`)
    if (known === undefined) this.askedBy.set(`${broker} ${what}`, start)
    else if (known !== start) this.violated(`two starts of ${broker} ask ${what}`)
  }

  /** No proposal lies in the log twice that ends so. */
  checkLog(shard: number, lastIndex: number, lastTerm: number): void {
    const seen = new Map<string, number>()
    let term = lastTerm
    for (let index = lastIndex; index > 0; index--) {
      const entry = this.entries.get(`${shard} ${index} ${term}`)
      if (entry === undefined) return
      const { id, before } = entry
      if (id !== '' && seen.has(id))
        this.violated(`${id} is in shard ${shard} at ${index} and at ${seen.get(id)}`)
      seen.set(id, index)
      term = before
    }
  }
}

function idOf({ payload }: Entry): string {
  return payload.kind === 'empty' ? '' : payload.id
}

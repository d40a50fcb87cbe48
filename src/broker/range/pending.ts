// The entries of one open segment that have a number but no answer yet, in entry order: a ring of parallel arrays, so
// that a produce on its way costs no object of its own.
//
//        head                leaderAnswered              head + count
//   ...   │ numbered, durable here │ numbered, in the WAL's queue │
//
// Answers leave at the head as the high watermark passes; answers with acks=1 leave earlier, as the leader's own disk has
// the entry, and their place stays until the entry commits.

import { assert } from '../../base/assert.ts'
import { ENVELOPE_BYTES, type Entry } from '../../model/entry.ts'
import { ACKS_LEADER, type ProduceSink } from '../sinks.ts'

export class PendingRing {
  private entries: (Entry | undefined)[] = Array.from({ length: 64 })
  private sinks: (ProduceSink | undefined)[] = Array.from({ length: 64 })
  private slots = new Int32Array(64)
  private acks = new Uint8Array(64)
  private head = 0
  private count = 0
  /** Of the entries, as they are stored. */
  bytes = 0

  get size(): number {
    return this.count
  }

  push(entry: Entry, sink: ProduceSink | undefined, slot: number, acks: number): void {
    if (this.count === this.entries.length) this.grow()
    const at = (this.head + this.count) & (this.entries.length - 1)
    this.entries[at] = entry
    this.sinks[at] = sink
    this.slots[at] = slot
    this.acks[at] = acks
    this.count++
    this.bytes += ENVELOPE_BYTES + entry.batch.length
  }

  /** The oldest entry; undefined when there is none. */
  first(): Entry | undefined {
    return this.count === 0 ? undefined : this.entries[this.head]
  }

  /** Answers the oldest entry's producer, unless that was done, and forgets it. */
  commitFirst(): void {
    const at = this.take()
    const entry = this.entries[at]
    const sink = this.sinks[at]
    this.entries[at] = undefined
    this.sinks[at] = undefined
    assert(entry !== undefined, 'a pending place holds an entry')
    sink?.produced(this.slots[at] as number, entry.baseOffset, entry.logTimeMs)
  }

  /** Answers acks=1 for all entries below `durableEnd`. */
  answerLeaderAcks(durableEnd: number): void {
    for (let i = 0; i < this.count; i++) {
      const at = (this.head + i) & (this.entries.length - 1)
      const entry = this.entries[at] as Entry
      if (entry.entryNumber >= durableEnd) return
      const sink = this.sinks[at]
      if (sink === undefined || this.acks[at] !== ACKS_LEADER) continue
      this.sinks[at] = undefined
      sink.produced(this.slots[at] as number, entry.baseOffset, entry.logTimeMs)
    }
  }

  /** Gives every producer without an answer to `tell`: its entry stays, and may commit all the same. */
  giveUpWaiting(tell: (sink: ProduceSink, slot: number) => void): void {
    for (let i = 0; i < this.count; i++) {
      const at = (this.head + i) & (this.entries.length - 1)
      const sink = this.sinks[at]
      this.sinks[at] = undefined
      if (sink !== undefined) tell(sink, this.slots[at] as number)
    }
  }

  /** Gives every producer without an answer to `tell` and forgets all entries. */
  clear(tell: (sink: ProduceSink, slot: number) => void): void {
    while (this.count > 0) {
      const at = this.take()
      const sink = this.sinks[at]
      this.entries[at] = undefined
      this.sinks[at] = undefined
      if (sink !== undefined) tell(sink, this.slots[at] as number)
    }
  }

  private take(): number {
    const at = this.head
    this.bytes -= ENVELOPE_BYTES + (this.entries[at] as Entry).batch.length
    this.head = (at + 1) & (this.entries.length - 1)
    this.count--
    return at
  }

  private grow(): void {
    const old = this.entries.length
    const entries = Array.from<Entry | undefined>({ length: 2 * old })
    const sinks = Array.from<ProduceSink | undefined>({ length: 2 * old })
    const slots = new Int32Array(2 * old)
    const acks = new Uint8Array(2 * old)
    for (let i = 0; i < this.count; i++) {
      const from = (this.head + i) & (old - 1)
      entries[i] = this.entries[from]
      sinks[i] = this.sinks[from]
      slots[i] = this.slots[from] as number
      acks[i] = this.acks[from] as number
    }
    this.entries = entries
    this.sinks = sinks
    this.slots = slots
    this.acks = acks
    this.head = 0
  }
}

// What must be true of records, kept in memory and apart from everything that it judges. It knows what was handed to
// producers, what they were told, and what readers have seen:
//
//   [I1]  what was acknowledged at an offset is there             [I10] no record is stored twice
//   [I4]  offsets are dense from the log's start                  [I11] a producer's records lie in the order of sending
//   [I5]  what was read once is read again, by everyone           and nothing is read that was never sent, or refused
//
// A record is named `log/producer/number`, a log being one life of one topic, and its value is derived from its name, so
// that bytes out of place are seen as such.

import { concatBytes, equalBytes, fromUtf8, utf8 } from '../base/bytes.ts'

export interface SentRecord {
  readonly name: string
  readonly value: Uint8Array
}

type Outcome = 'unknown' | 'acknowledged' | 'refused'

interface SentState {
  readonly log: string
  readonly producer: number
  readonly number: number
  readonly partition: number
  /** Of its own: the sender may change what it was given. */
  readonly value: Uint8Array
  /** Of an idempotent producer. */
  readonly once: boolean
  outcome: Outcome
  offset: number | undefined
}

interface PartitionTruth {
  /** By offset: what was acknowledged or read there. */
  readonly records: Map<number, string>
  /** One more than the greatest offset known. */
  end: number
}

export class Judge {
  readonly violations: string[] = []
  sent = 0
  acknowledged = 0
  read = 0
  private readonly states = new Map<string, SentState>()
  private readonly logs = new Map<string, Map<number, PartitionTruth>>()

  /**
   * The next record of a producer in a log. `padding`, or so many bytes derived from its name, follow the name. Without `once`
   * it may be there several times, and behind others.
   */
  send(
    log: string,
    producer: number,
    partition: number,
    padding: number | Uint8Array,
    once: boolean = true,
  ): SentRecord {
    const number = this.sent++
    const name = `${log}/${producer}/${number}`
    const value = valueOf(name, padding)
    const state: SentState = {
      log,
      producer,
      number,
      partition,
      value: value.slice(),
      once,
      outcome: 'unknown',
      offset: undefined,
    }
    this.states.set(name, state)
    return { name, value }
  }

  /** `offset` -1: stored, and nobody can say where. */
  acknowledge(name: string, partition: number, offset: number): void {
    const state = this.states.get(name) as SentState
    state.outcome = 'acknowledged'
    this.acknowledged++
    if (partition !== state.partition) {
      this.violations.push(
        `${name} was sent to ${state.partition} and acknowledged in ${partition}`,
      )
    }
    if (offset >= 0) this.place(name, state, offset, 'acknowledged')
  }

  /** Its sender was told that it is not stored (`maybeStored` false), or that it cannot be known. */
  reject(name: string, maybeStored: boolean): void {
    const state = this.states.get(name) as SentState
    if (maybeStored) return
    state.outcome = 'refused'
    if (state.offset !== undefined) {
      this.violations.push(`${name} was refused, and is at offset ${state.offset}`)
    }
  }

  /** One reading of one log from `start`, which must reach what is known now. */
  reading(log: string): Reading {
    return new Reading(this, log)
  }

  private place(name: string, state: SentState, offset: number, how: string): void {
    const { log, partition } = state
    const truth = this.partition(log, partition)
    const known = truth.records.get(offset)
    if (known !== undefined && known !== name) {
      this.wrong(log, partition, offset, `${known} was there before, now ${name} is ${how}`)
    }
    if (state.once && state.offset !== undefined && state.offset !== offset) {
      const before = `it was at offset ${state.offset} before`
      this.wrong(log, partition, offset, `${name} is ${how}; ${before}`)
    }
    state.offset = offset
    truth.records.set(offset, name)
    truth.end = Math.max(truth.end, offset + 1)
  }

  /** For a reading: what lies at an offset. Returns the record, if it is one. */
  found(log: string, partition: number, offset: number, value: Uint8Array): SentState | undefined {
    this.read++
    const wrong = (what: string): void => this.wrong(log, partition, offset, what)
    const name = nameIn(value)
    const state = this.states.get(name)
    if (state === undefined) {
      wrong('bytes that nobody sent')
      return undefined
    }
    if (!equalBytes(value, state.value)) wrong(`${name} with other bytes than were sent`)
    if (state.log !== log || state.partition !== partition) {
      wrong(`${name} belongs to ${state.log} ${state.partition}`)
      return undefined
    }
    if (state.outcome === 'refused') wrong(`${name}, which was refused`)
    this.place(name, state, offset, 'read')
    return state
  }

  wrong(log: string, partition: number, offset: number, what: string): void {
    this.violations.push(`${log} partition ${partition} offset ${offset}: ${what}`)
  }

  partition(log: string, partition: number): PartitionTruth {
    let partitions = this.logs.get(log)
    if (partitions === undefined) {
      partitions = new Map()
      this.logs.set(log, partitions)
    }
    let truth = partitions.get(partition)
    if (truth === undefined) {
      truth = { records: new Map(), end: 0 }
      partitions.set(partition, truth)
    }
    return truth
  }

  /** Per partition of a log: one more than the greatest offset known now. */
  ends(log: string): ReadonlyMap<number, number> {
    const ends = new Map<number, number>()
    for (const [partition, { end }] of this.logs.get(log) ?? []) ends.set(partition, end)
    return ends
  }
}

export class Reading {
  private readonly judge: Judge
  private readonly log: string
  private readonly due: ReadonlyMap<number, number>
  private readonly next = new Map<number, number>()
  /** Per partition and producer: the number of the last record read. */
  private readonly last = new Map<string, number>()

  constructor(judge: Judge, log: string) {
    this.judge = judge
    this.log = log
    this.due = judge.ends(log)
  }

  record(partition: number, offset: number, value: Uint8Array): void {
    const expected = this.next.get(partition) ?? 0
    const { judge, log } = this
    if (offset !== expected) judge.wrong(log, partition, offset, `${expected} was expected`)
    this.next.set(partition, offset + 1)
    const state = judge.found(log, partition, offset, value)
    if (state === undefined) return
    const key = `${partition}/${state.producer}`
    const before = this.last.get(key) ?? -1
    if (state.once && state.number <= before) {
      const what = `record ${state.number} of a producer after ${before}`
      judge.wrong(log, partition, offset, what)
    }
    this.last.set(key, Math.max(before, state.number))
  }

  /** The reader came to the end that it was told. */
  end(): void {
    for (const [partition, due] of this.due) {
      const reached = this.next.get(partition) ?? 0
      if (reached < due) {
        this.judge.violations.push(
          `${this.log} partition ${partition}: known up to offset ${due - 1}, readable only below ${reached}`,
        )
      }
    }
  }
}

function valueOf(name: string, padding: number | Uint8Array): Uint8Array {
  const head = utf8(`${name}\n`)
  if (typeof padding !== 'number') return concatBytes([head, padding])
  const value = new Uint8Array(head.length + padding)
  value.set(head)
  // Two primes: neither bytes nor pages repeat, and every byte depends on the name.
  let x = head.length
  for (const byte of head) x = (x * 31 + byte) % 65_521
  for (let i = head.length; i < value.length; i++) {
    x = (x * 75 + 74) % 65_537
    value[i] = x
  }
  return value
}

function nameIn(value: Uint8Array): string {
  let end = 0
  while (end < value.length && value[end] !== 10) end++
  return fromUtf8(value.subarray(0, end))
}

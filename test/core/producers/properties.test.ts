import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Truncated } from '../../../src/base/cursor.ts'
import { type Prng, prng } from '../../../src/base/prng.ts'
import { RangeState, stateDigest } from '../../../src/core/producers/range-state.ts'
import { batchOf, entryOf, type Made } from './support.ts'

const EXPIRY_MS = 50
const PARTITIONS = 3
const FIRST = 10
const seeds = fc.integer({ min: 0, max: 2 ** 31 })

/** Remembers every batch for ever and judges by searching them all. */
class Naive {
  readonly stored: (Made & { readonly offset: number; readonly timeMs: number })[] = []
  readonly times: number[] = Array(PARTITIONS).fill(0)
  expired: Map<string, number> = new Map()
  greatestExpired = -1

  judge(made: Made, entries: readonly (Made & { readonly offset: number })[], committed: number) {
    const { partition, id, epoch, first, count } = made
    if (id < 0) return 'accept'
    const gone = this.expired.get(`${partition}/${id}`) ?? 0
    const mine = entries
      .map((entry, number) => ({ ...entry, number, pending: number >= committed }))
      .filter((entry) => entry.partition === partition && entry.id === id)
      .filter((entry) => entry.pending || entry.number >= gone)
    const newest = mine.at(-1)
    const begin =
      first === 0
        ? 'accept'
        : id <= this.greatestExpired
          ? 'UNKNOWN_PRODUCER_ID'
          : 'OUT_OF_ORDER_SEQUENCE'
    if (newest === undefined || epoch > newest.epoch) return begin
    if (epoch < newest.epoch) return 'PRODUCER_FENCED'
    if (first === newest.first + newest.count) return 'accept'
    const same = mine.filter((entry) => entry.epoch === epoch)
    const exact = same.find((entry) => entry.first === first && entry.count === count)
    if (exact?.pending === true) return `pending ${exact.number} ${exact.offset}`
    const done = same.filter((entry) => !entry.pending)
    if (exact !== undefined && done.slice(-5).includes(exact)) return `seen ${exact.offset}`
    const last = done.at(-1)
    const stored = last !== undefined && first + count <= last.first + last.count
    return stored ? 'DUPLICATE_SEQUENCE' : 'OUT_OF_ORDER_SEQUENCE'
  }

  /** Entry `number` is committed: whoever was idle in its partition for too long leaves. */
  commit(entries: readonly (Made & { readonly timeMs: number })[], number: number): void {
    const entry = entries[number] as Made & { readonly timeMs: number }
    const at = entry.partition - FIRST
    const now = Math.max(this.times[at] as number, entry.timeMs)
    this.times[at] = now
    this.lastUse.set(`${entry.partition}/${entry.id}`, now)
    for (const [key, used] of this.lastUse) {
      const [partition, id] = key.split('/').map(Number)
      if (partition !== entry.partition || (id as number) < 0 || used > now - EXPIRY_MS) continue
      this.lastUse.delete(key)
      this.expired.set(key, number + 1)
      this.greatestExpired = Math.max(this.greatestExpired, id as number)
    }
  }
  private readonly lastUse = new Map<string, number>()
}

function randomBatch(chance: Prng): Made {
  const id = chance.below(5) - 1
  return {
    partition: FIRST + chance.below(PARTITIONS),
    id,
    epoch: id < 0 ? -1 : chance.below(2),
    first: id < 0 ? -1 : chance.below(9),
    count: 1 + chance.below(3),
  }
}

interface Run {
  readonly state: RangeState
  readonly entries: (Made & { readonly offset: number; readonly timeMs: number })[]
  readonly naive: Naive
}

/** Drives a leader with random batches, retries of old ones among them, and compares every verdict. */
function drive(seed: number, steps: number, compare: boolean): Run {
  const chance = prng(seed)
  const state = new RangeState(FIRST, Array(PARTITIONS).fill(0), EXPIRY_MS)
  const run: Run = { state, entries: [], naive: new Naive() }
  let committed = 0
  let now = 0
  const commit = (end: number): void => {
    state.commit(end)
    for (; committed < end; committed++) run.naive.commit(run.entries, committed)
  }
  for (let i = 0; i < steps; i++) {
    now += chance.below(8) === 0 ? chance.below(EXPIRY_MS) : 0
    const old = chance.below(3) === 0 ? run.entries[chance.below(run.entries.length)] : undefined
    const made = next(run, old ?? randomBatch(chance), chance)
    const verdict = state.check(made.partition, batchOf(made))
    if (compare) assert.equal(spelt(verdict, state), run.naive.judge(made, run.entries, committed))
    if (verdict === 'accept') {
      const offset = state.nextOffset(made.partition)
      state.append(entryOf(made, run.entries.length, offset, now))
      run.entries.push({ ...made, offset, timeMs: now })
    }
    if (chance.below(2) === 0) commit(committed + chance.below(run.entries.length - committed + 1))
  }
  commit(run.entries.length)
  return run
}

/** Often what the producer would really send next, so that runs grow long. */
function next(run: Run, made: Made, chance: Prng): Made {
  if (made.id < 0 || chance.below(3) > 0) return made
  const newest = run.entries.findLast((e) => e.id === made.id && e.partition === made.partition)
  if (newest === undefined) return { ...made, first: 0 }
  return { ...made, epoch: newest.epoch, first: newest.first + newest.count }
}

function spelt(verdict: string, state: RangeState): string {
  if (verdict === 'seen') return `seen ${state.verdictOffset}`
  if (verdict === 'pending') return `pending ${state.verdictEntry} ${state.verdictOffset}`
  return verdict
}

/** The producers of all partitions, as the bytes that are staged. */
function refold(run: Run, state: RangeState, from: number): RangeState {
  for (let i = from; i < run.entries.length; i++) {
    const entry = run.entries[i] as (typeof run.entries)[number]
    state.fold(entryOf(entry, i, entry.offset, entry.timeMs))
  }
  return state
}

test('I10: every verdict is the one of a model that remembers everything', () => {
  fc.assert(
    fc.property(seeds, (seed) => void drive(seed, 150, true)),
    { numRuns: 400 },
  )
})

test('a state folds from entries alone: leader, follower and recovery end with equal bytes', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const run = drive(seed, 120, false)
      const fresh = new RangeState(FIRST, Array(PARTITIONS).fill(0), EXPIRY_MS)
      const folded = refold(run, fresh, 0)
      assert.deepEqual(folded.encode(), run.state.encode())
      assert.equal(stateDigest(folded.encode()), stateDigest(run.state.encode()))
    }),
    { numRuns: 100 },
  )
})

test('a state goes on from its bytes as if it had never been encoded', () => {
  fc.assert(
    fc.property(seeds, fc.nat(120), (seed, cut) => {
      const run = drive(seed, 120, false)
      const half = new RangeState(FIRST, Array(PARTITIONS).fill(0), EXPIRY_MS)
      const at = Math.min(cut, run.entries.length)
      refold({ ...run, entries: run.entries.slice(0, at) }, half, 0)
      const again = RangeState.decode(half.encode(), EXPIRY_MS)
      again.begin(at)
      assert.deepEqual(refold(run, again, at).encode(), run.state.encode())
    }),
    { numRuns: 100 },
  )
})

test('splitting and joining again changes nothing, and a part judges as the whole did', () => {
  fc.assert(
    fc.property(seeds, fc.integer({ min: 1, max: PARTITIONS - 1 }), (seed, cut) => {
      const { state } = drive(seed, 120, false)
      const [left, right] = state.split(FIRST + cut)
      assert.deepEqual(RangeState.join(left, right).encode(), state.encode())
      const chance = prng(seed)
      for (let i = 0; i < 50; i++) {
        const made = randomBatch(chance)
        const part = made.partition < FIRST + cut ? left : right
        const batch = batchOf(made)
        const whole = spelt(state.check(made.partition, batch), state)
        assert.equal(spelt(part.check(made.partition, batch), part), whole)
        assert.equal(part.nextOffset(made.partition), state.nextOffset(made.partition))
      }
    }),
    { numRuns: 100 },
  )
})

test('bytes that are no state are refused as such', () => {
  fc.assert(
    fc.property(seeds, fc.uint8Array({ maxLength: 100 }), (seed, noise) => {
      const chance = prng(seed)
      const bytes = drive(seed, 30, false).state.encode().slice()
      bytes[chance.below(bytes.length)] = chance.below(256)
      for (const one of [noise, bytes, bytes.subarray(0, chance.below(bytes.length))]) {
        try {
          RangeState.decode(one, EXPIRY_MS)
        } catch (error) {
          assert.ok(error instanceof Truncated, String(error))
        }
      }
    }),
    { numRuns: 300 },
  )
})

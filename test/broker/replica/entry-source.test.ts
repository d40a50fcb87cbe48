import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { EntrySource, type SourceLog } from '../../../src/broker/replica/entry-source.ts'
import { ENVELOPE_BYTES, type Entry, type SegmentPlace } from '../../../src/model/entry.ts'
import { encodeEntries } from '../../../src/wire/data/entries.ts'

const PLACE: SegmentPlace = { topicIdBytes: new Uint8Array(16).fill(7), range: 1, segment: 2 }
const BATCH_BYTES = 100
const ENTRY_BYTES = ENVELOPE_BYTES + BATCH_BYTES

/** With entries from `start` on in memory. */
class Log implements SourceLog {
  start = 0
  reads = 0
  private readonly entries: Entry[] = []

  get end(): number {
    return this.entries.length
  }

  add(count: number): void {
    for (let i = 0; i < count; i++) {
      const n = this.end
      this.entries.push({
        entryNumber: n,
        partition: 0,
        baseOffset: n,
        recordCount: 1,
        logTimeMs: 1,
        highWatermark: 0,
        leastKeyHash: 0,
        greatestKeyHash: 1,
        batch: new Uint8Array(BATCH_BYTES).fill(n),
      })
    }
  }

  readEntries(from: number, maxBytes: number): readonly Entry[] | undefined {
    this.reads++
    if (from < this.start) return undefined
    return this.entries.slice(from, from + Math.max(1, Math.floor(maxBytes / ENTRY_BYTES)))
  }
}

function make(followers: number): { readonly log: Log; readonly source: EntrySource } {
  const log = new Log()
  return { log, source: new EntrySource(() => log, PLACE, followers) }
}

test('entries are encoded once for two followers, also when one link takes several encodings before the other', () => {
  const { log, source } = make(2)
  log.add(30)
  for (let follower = 0; follower < 2; follower++) {
    for (const from of [0, 10, 20]) assert.equal(source.read(from, 10 * ENTRY_BYTES)?.count, 10)
  }
  assert.equal(log.reads, 3)
})

test('what all followers have had is not kept, nor anything of one that has a single follower', () => {
  for (const followers of [1, 2, 3]) {
    const { log, source } = make(followers)
    log.add(5)
    for (let i = 0; i < 2 * followers; i++) source.read(0, 1000)
    assert.equal(log.reads, 2)
  }
})

test('nothing is kept when all has been committed', () => {
  const { log, source } = make(2)
  log.add(5)
  source.read(0, 1000)
  source.forget()
  source.read(0, 1000)
  assert.equal(log.reads, 2)
})

test('what memory has no more is not there', () => {
  const { log, source } = make(2)
  log.add(5)
  log.start = 3
  assert.equal(source.read(2, 1000), undefined)
  assert.equal(source.read(3, 1000)?.count, 2)
})

test('a follower that lags behind the others makes its own', () => {
  const { log, source } = make(2)
  log.add(100)
  for (let from = 0; from < 100; from += 10) source.read(from, 10 * ENTRY_BYTES)
  log.reads = 0
  assert.equal(source.read(0, 10 * ENTRY_BYTES)?.count, 10)
  assert.equal(log.reads, 1)
})

test('whatever followers ask for and whenever entries come, each is given its entries in order, and no more than have room', () => {
  const step = fc.oneof(
    fc.record({ add: fc.integer({ min: 1, max: 20 }) }),
    fc.record({ follower: fc.nat(2), budget: fc.integer({ min: 1, max: 12 }) }),
    fc.constant('commit' as const),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { log, source } = make(3)
      const next = [0, 0, 0]
      for (const one of steps) {
        if (one === 'commit') source.forget()
        else if ('add' in one) log.add(one.add)
        else {
          const from = next[one.follower] ?? 0
          const budget = one.budget * ENTRY_BYTES
          const encoded = source.read(from, budget)
          assert.ok(encoded !== undefined)
          const entries = log
            .readEntries(from, encoded.count * ENTRY_BYTES)
            ?.slice(0, encoded.count)
          const right = encodeEntries(PLACE, entries ?? [])
          assert.deepEqual(Buffer.concat(encoded.pieces), Buffer.concat(right.pieces))
          assert.equal(encoded.bytes, right.bytes)
          assert.ok(encoded.count > 0 || from === log.end)
          assert.ok(encoded.bytes <= Math.max(budget, ENTRY_BYTES))
          next[one.follower] = from + encoded.count
        }
      }
    }),
  )
})

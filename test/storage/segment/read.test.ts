import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { simDisk } from '../../../src/sim/ports/disk.ts'
import { settle } from '../support/ports.ts'
import {
  appendAll,
  BASE,
  counted,
  KEY,
  LISTENER,
  Model,
  plain,
  rig,
  scanAll,
  until,
} from './rig.ts'

type Step =
  | { do: 'append'; partition: number; bytes: number; records: number; timestamp: number }
  | { do: 'commit'; behind: number }
  | { do: 'flush' }
  | { do: 'age' }
  | { do: 'read'; partition: number; offset: number; maxBytes: number }
  | { do: 'follow'; partition: number; maxBytes: number }
  | { do: 'time'; partition: number; timestamp: number }

const partition = fc.integer({ min: 0, max: 4 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      partition,
      bytes: fc.oneof(fc.integer({ min: 61, max: 400 }), fc.constant(6000)),
      records: fc.integer({ min: 1, max: 5 }),
      timestamp: fc.integer({ min: 0, max: 50 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('commit' as const),
      behind: fc.integer({ min: 0, max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('flush' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('age' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('read' as const),
      partition,
      offset: fc.integer({ min: 0, max: 60 }),
      maxBytes: fc.integer({ min: 0, max: 3000 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('follow' as const),
      partition,
      maxBytes: fc.integer({ min: 0, max: 1000 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('time' as const),
      partition,
      timestamp: fc.integer({ min: 0, max: 51 }),
    }),
  },
)

/** A block was written between the search of the index and the reading of what it did not hold. */
const LOOKED_UP_WHILE_WRITTEN: Step[] = [
  { do: 'append', partition: 0, bytes: 61, records: 1, timestamp: 0 },
  { do: 'commit', behind: 0 },
  { do: 'flush' },
  { do: 'append', partition: 3, bytes: 61, records: 1, timestamp: 0 },
  { do: 'append', partition: 0, bytes: 6000, records: 1, timestamp: 0 },
  { do: 'commit', behind: 0 },
  { do: 'follow', partition: 1, maxBytes: 0 },
  { do: 'read', partition: 0, offset: 1, maxBytes: 0 },
  { do: 'commit', behind: 0 },
  { do: 'append', partition: 0, bytes: 6000, records: 1, timestamp: 0 },
  { do: 'time', partition: 3, timestamp: 0 },
]

test('whatever is appended, committed, flushed and evicted: reads give what the model gives', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 80 }), async (steps) => {
      // A cache that holds hardly more than what is unflushed: most reads come from the file.
      const r = rig(simDisk().mount(), {
        cacheBytes: 3000,
        unflushedBytesMax: 2000,
        blockBytes: 1500,
      })
      const segment = r.engine.create(KEY, LISTENER)
      const model = new Model()
      for (const s of steps) {
        switch (s.do) {
          case 'append':
            segment.append(model.make(s.partition, s.bytes, s.records, s.timestamp))
            break
          case 'commit':
            r.wal.sync()
            segment.advance(Math.max(segment.highWatermark, segment.end - s.behind))
            break
          case 'flush':
            await r.engine.flush()
            break
          case 'age':
            r.clock.advance(5000)
            await settle()
            break
          case 'read': {
            const want = model.read(s.partition, s.offset, s.maxBytes, segment.highWatermark)
            const cached = segment.readCached(s.partition, s.offset, s.maxBytes)
            if (cached !== undefined) assert.deepEqual(plain(cached), plain(want))
            const got = await segment.read(s.partition, s.offset, s.maxBytes)
            assert.deepEqual(plain(got), plain(want))
            break
          }
          case 'follow': {
            const all: unknown[] = []
            for (let next = 0; ; ) {
              const part = await segment.read(s.partition, next, s.maxBytes)
              const last = part.at(-1)
              if (last === undefined) break
              all.push(...(plain(part) as unknown[]))
              next = last.baseOffset + last.recordCount
            }
            assert.deepEqual(
              all,
              plain(model.read(s.partition, 0, Number.POSITIVE_INFINITY, segment.highWatermark)),
            )
            break
          }
          case 'time': {
            const got = await segment.readByTime(s.partition, s.timestamp)
            const want = model.byTime(s.partition, s.timestamp, segment.highWatermark)
            assert.equal(got?.entryNumber, want?.entryNumber)
            break
          }
        }
        assert.equal(segment.damage, undefined)
      }
      assert.deepEqual(
        plain(await scanAll(segment)),
        plain(model.entries.slice(0, segment.durableEnd)),
      )
      assert.deepEqual(r.failures, [])
      await r.engine.close()
    }),
    { numRuns: 150, examples: [[LOOKED_UP_WHILE_WRITTEN]] },
  )
})

test('an index that is missing, cut short, overwritten or of another time gives the same reads', async () => {
  const sim = simDisk({ trace: true })
  const disk = sim.mount()
  const first = rig(disk)
  const model = new Model()
  const segment = first.engine.create(KEY, LISTENER)
  for (let round = 0; round < 12; round++) {
    appendAll(
      first,
      segment,
      Array.from({ length: 20 }, (_, i) => model.make(i % 5, 200, 1, i)),
    )
    await first.engine.flush()
  }
  await first.engine.close()
  const good = sim.bytesOf(`${BASE}.index`).slice()
  assert.ok(good.length > 0)
  const spoil: ((bytes: Uint8Array) => Uint8Array | undefined)[] = [
    () => undefined,
    (bytes) => bytes.slice(0, bytes.length >> 1),
    (bytes) => bytes.slice(0, bytes.length - 1),
    (bytes) => bytes.fill(0),
    (bytes) => bytes.fill(0xff, 100, 140),
    (bytes) => Buffer.concat([bytes, bytes]),
  ]
  for (const spoilt of spoil) {
    await disk.remove(`${BASE}.index`)
    const bytes = spoilt(good.slice())
    if (bytes !== undefined) {
      const file = await disk.open(`${BASE}.index`, { mode: 'create' })
      await file.write([bytes], 0)
    }
    const again = rig(disk)
    const reopened = await again.engine.open(KEY, { topicName: 't', walFirst: undefined })
    assert.equal(reopened.damage, undefined)
    assert.equal(reopened.end, model.entries.length)
    reopened.advance(reopened.end)
    for (let p = 0; p < 5; p++) {
      assert.deepEqual(
        plain(await reopened.read(p, 7, 3000)),
        plain(model.read(p, 7, 3000, reopened.end)),
      )
    }
    // What was rebuilt is what was written.
    assert.deepEqual(Buffer.from(sim.bytesOf(`${BASE}.index`)), Buffer.from(good))
    await again.engine.close()
  }
})

for (const perFlush of [64, 640, 6400]) {
  test(`one partition of 64, flushed every ${perFlush} entries: at most 4x its bytes are read`, async () => {
    const disk = counted(simDisk().mount())
    const big = { cacheBytes: 1 << 24, unflushedBytesMax: 1 << 23, blockBytes: 1 << 20 }
    const first = rig(disk, big)
    const model = new Model()
    const segment = first.engine.create(KEY, LISTENER)
    for (let made = 0; made < 6400; made += perFlush) {
      const some = Array.from({ length: perFlush }, (_, i) => model.make((i * 7) % 64, 150))
      appendAll(first, segment, some)
      await first.engine.flush()
    }
    await first.engine.close()
    for (const maxBytes of [1, 4096, 1 << 20]) {
      const again = rig(disk, big)
      const reopened = await again.engine.open(KEY, { topicName: 't', walFirst: undefined })
      reopened.advance(reopened.end)
      // The table of contents is read once per segment, whatever is read afterwards.
      await reopened.read(1, 0, 1)
      disk.readBytes = 0
      let returned = 0
      for (let next = 0; ; ) {
        const part = await reopened.read(3, next, maxBytes)
        const last = part.at(-1)
        if (last === undefined) break
        for (const entry of part) returned += entry.batch.length
        next = last.baseOffset + last.recordCount
      }
      assert.equal(returned, 100 * 150)
      assert.ok(disk.readBytes <= 4 * returned, `${disk.readBytes} read, ${returned} returned`)
      await again.engine.close()
    }
  })
}

test('memory keeps its budget, and nothing leaves it before it is in the file', async () => {
  const sim = simDisk({ trace: true })
  const disk = sim.mount()
  const r = rig(disk, { cacheBytes: 40_000, unflushedBytesMax: 30_000, blockBytes: 2000 })
  const segment = r.engine.create(KEY, LISTENER)
  const model = new Model()
  let stuck: (() => void) | undefined
  sim.before = ({ kind }) =>
    kind === 'write' ? new Promise<void>((resolve) => (stuck = resolve)) : undefined
  for (let i = 0; i < 40; i++) appendAll(r, segment, [model.make(i % 3, 400)])
  await until(() => stuck !== undefined)
  assert.ok(r.engine.unflushedBytes >= 40 * 400)
  assert.equal(segment.readCached(0, 0, 1)?.length, 1, 'unflushed entries are in memory')
  sim.before = undefined
  stuck?.()
  await r.engine.flush()
  assert.equal(r.engine.unflushedBytes, 0)
  for (let i = 0; i < 200; i++) {
    appendAll(r, segment, [model.make(i % 3, 400)])
    if (i % 10 === 9) await r.engine.flush()
  }
  assert.equal(segment.readCached(0, 0, 1), undefined, 'the oldest have left')
  assert.deepEqual(
    plain(await segment.read(0, 0, 5000)),
    plain(model.read(0, 0, 5000, segment.end)),
  )
  await r.engine.close()
})

test('a reader of the tail touches no disk', async () => {
  const sim = simDisk({ trace: true })
  const disk = sim.mount()
  const r = rig(disk)
  const segment = r.engine.create(KEY, LISTENER)
  const model = new Model()
  for (let i = 0; i < 50; i++) {
    appendAll(r, segment, [model.make(0, 300)])
    await settle()
    const reads = sim.trace.filter(({ kind }) => kind === 'read').length
    const got = await segment.read(0, i, 10_000)
    assert.equal(got.length, 1)
    assert.equal(sim.trace.filter(({ kind }) => kind === 'read').length, reads)
  }
  await r.engine.close()
})

test('a recovered tail above the high watermark is in the file and is not served', async () => {
  const sim = simDisk({ trace: true })
  const disk = sim.mount()
  const first = rig(disk)
  const model = new Model()
  appendAll(
    first,
    first.engine.create(KEY, LISTENER),
    Array.from({ length: 30 }, (_, i) => model.make(i % 2, 200, 1, i)),
  )
  await first.engine.flush()
  await first.engine.close()
  const r = rig(disk)
  const segment = await r.engine.open(KEY, { topicName: 't', walFirst: undefined })
  for (const highWatermark of [0, 7, 30]) {
    segment.advance(highWatermark)
    assert.deepEqual(
      plain(await segment.read(1, 0, 1 << 20)),
      plain(model.read(1, 0, 1 << 20, highWatermark)),
    )
    const late = await segment.readByTime(1, 15)
    assert.equal(late?.entryNumber, model.byTime(1, 15, highWatermark)?.entryNumber)
  }
  await r.engine.close()
})

test('many readers of one partition at once, each at its own pace, see all of it', async () => {
  const sim = simDisk({ trace: true })
  const disk = sim.mount()
  const r = rig(disk, { cacheBytes: 40_000, unflushedBytesMax: 30_000 })
  const segment = r.engine.create(KEY, LISTENER)
  const model = new Model()
  for (let i = 0; i < 500; i++) {
    appendAll(r, segment, [model.make(0, 8000)])
    if (i % 10 === 0) await r.engine.flush()
  }
  const readAll = async (maxBytes: number, start: number): Promise<void> => {
    const got: number[] = []
    for (let next = start; ; ) {
      const part = await segment.read(0, next, maxBytes)
      const last = part.at(-1)
      if (last === undefined) break
      got.push(...part.map((entry) => entry.entryNumber))
      next = last.baseOffset + 1
      if (next % 3 === 0) await settle()
    }
    assert.deepEqual(
      got,
      model.entries.slice(start).map((entry) => entry.entryNumber),
    )
  }
  await Promise.all([
    readAll(1, 0),
    readAll(100_000, 0),
    readAll(70_000, 50),
    readAll(500_000, 1),
    readAll(1 << 20, 0),
  ])
  await r.engine.close()
})

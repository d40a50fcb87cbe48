// A busy topic and an idle one side by side for a simulated week. Everything that could grow with time is looked at every
// virtual hour: the WAL, which the idle topic's record must not hold; the journal and the metadata, through which every
// roll and every drop goes; the files of segments and what lies beside them; the heap.
//
// EASTGUARD_WEEK_EVERY_MS=1000 makes it a batch a second; a batch a minute is what the time of a test run allows.

import assert from 'node:assert/strict'
import type { Admin, Producer } from '../../src/client/api.ts'
import { driven } from '../ports/support.ts'
import { testApart } from './apart.ts'
import { heapBytes, Living } from './living.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const EVERY_MS = Number(process.env['EASTGUARD_WEEK_EVERY_MS'] ?? 60_000)
const DAYS = 7
const RETENTION_MS = DAY_MS
const VALUE_BYTES = 700

interface Sample {
  readonly hour: number
  readonly wal: { readonly files: number; readonly bytes: number }
  readonly journal: { readonly files: number; readonly bytes: number }
  readonly topics: { readonly files: number; readonly bytes: number }
  readonly states: number
  readonly segments: number
  readonly heap: number
}

const PROMISE =
  'a busy and an idle topic side by side for a week leave WAL, journal, files and memory bounded'

await testApart(import.meta.url, PROMISE, async (tell) => {
  const living = new Living(7)
  const { clock } = living.world
  const samples: Sample[] = []
  /** When each offset of the busy topic was acknowledged. */
  const busyAt: number[] = []
  let idle = 0

  const sample = async (hour: number, admin: Admin): Promise<void> => {
    const { segments } = await admin.describeCluster()
    samples.push({
      hour,
      wal: living.below('wal'),
      journal: living.below('journal'),
      topics: living.below('topics'),
      states: living.disk.paths().filter((path) => path.endsWith('.state')).length,
      segments,
      heap: hour % 24 === 0 ? heapBytes() : 0,
    })
  }

  const hour = async (producer: Producer): Promise<void> => {
    const end = clock.monotonic() + HOUR_MS
    while (clock.monotonic() < end) {
      const began = clock.monotonic()
      const value = `${busyAt.length}`.padEnd(VALUE_BYTES, '.')
      const { offset } = await producer.send({ topic: 'busy', partition: 0, value })
      assert.equal(offset, busyAt.length)
      busyAt.push(clock.monotonic())
      await living.pause(EVERY_MS - (clock.monotonic() - began))
    }
  }

  await driven(clock, async () => {
    await living.start()
    const client = living.client()
    const admin = client.admin()
    await admin.createTopic('busy', {
      policy: { partitions: 1, segmentMs: HOUR_MS, retentionMs: RETENTION_MS },
    })
    await admin.createTopic('idle', { policy: { partitions: 1, retentionMs: -1 } })
    const producer = client.producer({ lingerMs: 0 })
    for (let day = 0; day < DAYS; day++) {
      const value = `day ${idle}`
      const { offset } = await producer.send({ topic: 'idle', partition: 0, value })
      assert.equal(offset, idle++)
      // The machine fails now and then in a week; what a restart leaves behind would add up, too.
      if (day === 2 || day === 4) {
        living.cutPower()
        await living.start()
      }
      for (let h = 0; h < 24; h++) {
        await hour(producer)
        await sample(24 * day + h + 1, admin)
      }
    }
    await client.close()
    for (const restarted of [false, true]) {
      if (restarted) {
        living.cutPower()
        await living.start()
      }
      await readsAll(living, busyAt, idle)
    }
    await living.stop()
  })

  const { walFilesMax, walFileBytes, journalFileBytes } = living.settings
  const most = (what: (one: Sample) => number): number => Math.max(...samples.map(what))
  const settled = samples.filter(({ hour }) => hour > 26)
  const least = (what: (one: Sample) => number): number => Math.min(...settled.map(what))
  tell(`${busyAt.length} batches, ${living.disk.operations} disk operations`)
  for (const one of samples) if (one.heap > 0) tell(JSON.stringify(one))
  tell(
    `most: WAL ${most((s) => s.wal.files)} files ${most((s) => s.wal.bytes)} B, journal ` +
      `${most((s) => s.journal.files)} files ${most((s) => s.journal.bytes)} B, segments ` +
      `${most((s) => s.segments)}, files of topics ${most((s) => s.topics.files)}, states ${most((s) => s.states)}`,
  )
  assert.deepEqual(living.complaints, [])
  // In use, what a rotation under way adds, and a spare.
  assert.ok(most((s) => s.wal.files) <= walFilesMax + 2)
  assert.ok(most((s) => s.wal.bytes) <= (walFilesMax + 2) * walFileBytes)
  assert.ok(most((s) => s.journal.bytes) <= 5 * journalFileBytes)
  // A day of hours, the one that is open, and the one that the next look at retention takes.
  assert.ok(most((s) => s.segments) <= 24 + 2 + 3 + DAYS + 1)
  assert.ok(most((s) => s.states) <= 2)
  assert.ok(most((s) => s.topics.files) - least((s) => s.topics.files) <= 6 + 2 * DAYS)
  const heaps = settled.filter(({ heap }) => heap > 0).map(({ heap }) => heap)
  // One measurement varies by a megabyte with what the compiler has just made: the middle of three does not.
  const grown = middle(heaps.slice(-3)) - middle(heaps.slice(0, 3))
  assert.ok(grown < 1.5 * 1024 * 1024, `the heap grew by ${grown} bytes in three days`)
  assert.deepEqual(
    living.disk.paths().filter((path) => /^(damaged|trash\/)|\.(cut|salvage|tmp)$/.test(path)),
    [],
  )
})

/** The idle topic whole, and of the busy one all that its retention does not let go. */
async function readsAll(living: Living, busyAt: readonly number[], idle: number): Promise<void> {
  await using client = living.client()
  let next = 0
  for await (const record of client.consumer({ topic: 'idle', stopAtEnd: true })) {
    assert.equal(record.offset, next)
    assert.equal(String(record.value), `day ${next++}`)
  }
  assert.equal(next, idle)
  const [first] = await client.admin().listOffsets('busy', 'earliest')
  assert.ok(first !== undefined)
  const kept = busyAt.findIndex((at) => at > living.world.clock.monotonic() - RETENTION_MS)
  assert.ok(first.offset > 0 && first.offset <= kept, `${first.offset} of ${kept}`)
  next = first.offset
  for await (const record of client.consumer({ topic: 'busy', stopAtEnd: true })) {
    assert.equal(record.offset, next)
    assert.equal(String(record.value), `${next++}`.padEnd(VALUE_BYTES, '.'))
  }
  assert.equal(next, busyAt.length)
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

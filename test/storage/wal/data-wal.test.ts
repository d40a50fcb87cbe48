import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Entry, getEnvelope } from '../../../src/model/entry.ts'
import { topicId } from '../../../src/model/ids.ts'
import { decodeSegmentEnd, encodeSegmentEnd } from '../../../src/storage/wal/control.ts'
import { beginDataWal, type DataWal } from '../../../src/storage/wal/data-wal.ts'
import { KIND_ENTRY, KIND_SEAL, type WalTarget } from '../../../src/storage/wal/types.ts'
import { beginOptions, recover, type World, world } from '../support/logs.ts'
import { settle } from '../support/ports.ts'

const TOPIC = topicId('0123456789abcdef0123456789abcdef')

function entry(entryNumber: number, bytes: number = 100): Entry {
  const batch = new Uint8Array(bytes).fill(entryNumber)
  const least = { leastKeyHash: 0, greatestKeyHash: 0xffffffff }
  const place = { entryNumber, partition: 1, baseOffset: entryNumber * 2, recordCount: 2 }
  return { ...place, ...least, logTimeMs: 5, highWatermark: 0, batch }
}

function target(segment: number, seen: string[]): WalTarget {
  const topicIdBytes = new Uint8Array(16).fill(segment)
  return {
    place: { topicIdBytes, range: 0, segment },
    walSlot: 0,
    walDurable: (end) => void seen.push(`${segment}<${end}`),
  }
}

async function open(w: World): Promise<DataWal> {
  return beginDataWal(await recover(w), beginOptions(w))
}

test('each segment of a group is told once how far it is durable, in order of its first LSN', async () => {
  const w = world()
  const wal = await open(w)
  const seen: string[] = []
  const [a, b, c] = [target(1, seen), target(2, seen), target(3, seen)]
  wal.append(b, entry(0))
  wal.append(a, entry(7))
  wal.append(b, entry(1))
  wal.append(a, entry(8))
  await wal.sync()
  assert.deepEqual(seen, ['2<2', '1<9'])
  wal.append(a, entry(9))
  wal.append(c, entry(0))
  await wal.sync()
  assert.deepEqual(seen.slice(2), ['1<10', '3<1'])
  await wal.close()
})

test('nobody hears of an entry whose write failed', async () => {
  const w = world()
  const wal = await open(w)
  await settle()
  const seen: string[] = []
  w.disk.fail({ operation: 'write', fault: 'io', times: Number.POSITIVE_INFINITY })
  wal.append(target(1, seen), entry(0))
  await assert.rejects(wal.sync())
  assert.deepEqual(seen, [])
  assert.equal(w.failures.length, 1)
})

test('entries are recovered byte for byte, whether their batch was copied or referenced', async () => {
  const w = world()
  const wal = await open(w)
  const seen: string[] = []
  const to = target(4, seen)
  const sizes = [61, 4095, 4096, 20_000]
  for (const [i, size] of sizes.entries()) wal.append(to, entry(i, size))
  await wal.sync()
  await wal.close()
  const found: Entry[] = []
  for await (const chunk of (await recover(w)).replay()) {
    for (const { kind, payload } of chunk) {
      assert.equal(kind, KIND_ENTRY)
      const decoded = getEnvelope(payload, 0)
      assert.deepEqual(decoded?.place, to.place)
      if (decoded !== undefined)
        found.push({ ...decoded.entry, batch: decoded.entry.batch.slice() })
    }
  }
  assert.deepEqual(
    found,
    sizes.map((size, i) => entry(i, size)),
  )
})

test('a seal has room when entries have none', async () => {
  const w = world()
  w.disk.capacityBytes = 2 * 64 * 1024 + 1000
  const wal = await open(w)
  await settle()
  const to = target(1, [])
  let next = 0
  while (wal.hasRoom(1000)) {
    wal.append(to, entry(next++, 1000))
    await wal.sync()
    await settle()
  }
  assert.ok(wal.blocked)
  const key = { topicId: TOPIC, range: 0, segment: 1 }
  await wal.appendRecord(KIND_SEAL, encodeSegmentEnd(key, next)).synced
  await wal.close()
  const ends: unknown[] = []
  for await (const chunk of (await recover(w)).replay()) {
    for (const { kind, payload } of chunk) {
      if (kind === KIND_SEAL) ends.push(decodeSegmentEnd(payload))
    }
  }
  assert.deepEqual(ends, [{ key, end: next }])
})

test('who was refused room hears of it when the queue has left, not only when a file comes free', async () => {
  const w = world()
  let told = 0
  const wal = await beginDataWal(await recover(w), {
    ...beginOptions(w),
    onSpace: () => void told++,
  })
  await settle()
  const to = target(1, [])
  let next = 0
  while (wal.hasRoom(1000)) wal.append(to, entry(next++, 1000))
  told = 0
  await wal.sync()
  assert.ok(told > 0)
})

test('how long a write and sync has been under way is told, from its beginning to its end', async () => {
  const w = world()
  const wal = await open(w)
  await settle()
  w.clock.advance(500)
  assert.equal(wal.syncAgeMs, 0)
  let free = (): void => {}
  w.disk.before = ({ kind }) =>
    kind === 'write' ? new Promise<void>((go) => (free = go)) : undefined
  const to = target(1, [])
  wal.append(to, entry(0))
  const first = wal.sync()
  await settle()
  w.clock.advance(300)
  // What comes meanwhile waits for the same disk, and begins no new count.
  wal.append(to, entry(1))
  const second = wal.sync()
  w.clock.advance(400)
  assert.equal(wal.syncAgeMs, 700)
  free()
  await first
  await settle()
  w.clock.advance(50)
  assert.equal(wal.syncAgeMs, 50)
  w.disk.before = undefined
  free()
  await second
  await settle()
  w.clock.advance(1000)
  assert.equal(wal.syncAgeMs, 0)
  await wal.close()
})

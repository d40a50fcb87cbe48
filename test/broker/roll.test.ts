// A roll that meets a failing disk: whatever was acknowledged before, while and after must be there at the next start.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Disk, DiskError, type DiskFile } from '../../src/ports/disk.ts'
import { type SimDisk, simDisk } from '../../src/sim/ports/disk.ts'
import { settle } from '../storage/support/ports.ts'
import { batchOf } from './support/raw-client.ts'
import { makeTopic, openStored, plainBatch, produce, readAll } from './support/stored-broker.ts'

const ENTRIES = 3

function numbered(number: number): Uint8Array {
  return plainBatch(200, 1, 1000 + number, number + 1)
}

/** Batches 0, 1, ... must lie at the offsets that they were acknowledged at. */
async function assertThere(sim: SimDisk, topic: string, offsets: readonly number[]): Promise<void> {
  sim.crash({ keepUnsynced: true })
  const again = await openStored(sim.mount(), 99)
  const read = await readAll(again, topic as Parameters<typeof readAll>[1], 0)
  assert.equal(read.error, undefined)
  for (const [number, offset] of offsets.entries()) {
    const found = read.batches.find((batch) => batch.offset === offset)
    const value = Buffer.from(numbered(number).subarray(61)).toString('hex')
    assert.ok(found?.hex.endsWith(value), `batch ${number} is at offset ${offset}`)
  }
  await again.close()
}

test('states of the past that cannot be removed do not undo the next roll, which has begun by then', async () => {
  const sim = simDisk()
  const running = await openStored(sim.mount(), 1)
  const topic = await makeTopic(running, 't', { partitions: 1, segmentEntries: ENTRIES })
  const held: { list?: () => void; journal?: () => void } = {}
  sim.before = ({ kind, path }) => {
    const list = kind === 'list' && path.endsWith('range-0') && held.list === undefined
    const journal =
      kind === 'write' &&
      path.startsWith('journal') &&
      held.list !== undefined &&
      held.journal === undefined
    if (list) {
      return new Promise((_, reject) => {
        held.list = () => reject(new DiskError('io', path, `cannot list ${path}`))
      })
    }
    if (journal) {
      return new Promise((resolve) => {
        held.journal = resolve
      })
    }
    return undefined
  }
  const offsets: number[] = []
  const send = async (): Promise<void> => {
    offsets.push(await produce(running, topic, 0, numbered(offsets.length)))
  }
  for (let i = 0; i < 2 * ENTRIES; i++) await send()
  for (let i = 0; i < 10; i++) await settle()
  assert.ok(held.list !== undefined && held.journal !== undefined, 'both are on their way')
  held.list()
  await settle()
  held.journal()
  await settle()
  for (let i = 0; i < 2 * ENTRIES; i++) await send()
  await assertThere(sim, topic, offsets)
})

/** The disk, on which the next write to the journal arrives, and is then told to have failed. */
function failingAfterwards(disk: Disk, armed: () => boolean): Disk {
  const open: Disk['open'] = async (path, options) => {
    const file = await disk.open(path, options)
    if (!path.startsWith('journal/')) return file
    const write: DiskFile['write'] = async (buffers, position) => {
      await file.write(buffers, position)
      if (armed()) throw new DiskError('io', path, `cannot write ${path}`)
    }
    return new Proxy(file, {
      get: (target, name) => {
        if (name === 'write') return write
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }
  return new Proxy(disk, {
    get: (target, name) => {
      if (name === 'open') return open
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

test('nothing more is acknowledged in a segment of which nobody knows whether it was rolled', async () => {
  const sim = simDisk()
  const failures: Error[] = []
  let armed = false
  const disk = failingAfterwards(sim.mount(), () => armed)
  const running = await openStored(disk, 1, {}, (error) => failures.push(error))
  const topic = await makeTopic(running, 't', { partitions: 1, segmentEntries: ENTRIES })
  await settle()
  armed = true
  const offsets: number[] = []
  for (let i = 0; i < ENTRIES + 2; i++) {
    const offset = await produce(running, topic, 0, numbered(i)).catch(() => undefined)
    if (offset !== undefined) offsets.push(offset)
    await settle()
  }
  assert.ok(failures.length > 0)
  assert.ok(offsets.length >= ENTRIES)
  await assertThere(sim, topic, offsets)
})

test('a wall clock that is set forward lets no producer be forgotten', async () => {
  const sim = simDisk()
  const first = await openStored(sim.mount(), 1)
  const topic = await makeTopic(first, 't', { partitions: 1, segmentEntries: ENTRIES })
  const batch = (producerId: number, baseSequence: number): Uint8Array =>
    batchOf([`${producerId}`], { producerId, producerEpoch: 0, baseSequence })
  const offset = await produce(first, topic, 0, batch(1, 0))
  first.clock.shiftWall(30 * 24 * 3600 * 1000)
  for (let i = 0; i < ENTRIES; i++) await produce(first, topic, 0, batch(2, i))
  await settle()
  sim.crash({ keepUnsynced: true })
  const second = await openStored(sim.mount(), 2)
  await produce(second, topic, 0, batch(3, 0))
  assert.equal(await produce(second, topic, 0, batch(1, 0)), offset, 'a retry is not stored again')
  await second.close()
})

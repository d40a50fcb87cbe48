// One bit of a small data directory is flipped, at one byte position after another. A broker that starts on it serves exactly
// the right records, or says what is damaged [I8]: never a wrong record, never a silent gap, never an end without a message,
// and never the damage of one segment in the name of another.
//
// `make test` takes a sample. All of them: EASTGUARD_FLIP_ALL=1 node --test build/test/broker/flipped-bits.test.js

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError } from '../../src/base/errors.ts'
import { openOf, segmentsOf } from '../../src/core/metadata/lookup.ts'
import { type DiskImage, simDisk } from '../../src/sim/ports/disk.ts'
import { HEADER_PAGE_BYTES } from '../../src/storage/segment/format.ts'
import { settle } from '../storage/support/ports.ts'
import {
  fill,
  makeTopic,
  openStored,
  type ReadBatch,
  type ReadPartition,
  readAll,
  type StoredBroker,
  type Truth,
  truthOf,
} from './support/stored-broker.ts'

const ALL: boolean = process.env['EASTGUARD_FLIP_ALL'] === '1'
/** A byte among zeros counts 1, others 8; a position is taken whenever so much has come together. */
const STRIDE = 180

interface Written {
  readonly image: DiskImage
  readonly truth: readonly Truth[]
  /** The open segments: a loss in the WAL may touch them. */
  readonly open: ReadonlySet<string>
}

/** Two topics: one with sealed segments, all in files; one whose entries only the WAL has. */
async function written(): Promise<Written> {
  const sim = simDisk()
  const disk = sim.mount()
  const first = await openStored(disk, 1)
  const rolled = await makeTopic(first, 'rolled', { partitions: 2, segmentEntries: 5 })
  const young = await makeTopic(first, 'young', { partitions: 1 })
  await fill(first, rolled, 2, 12)
  await first.close()
  const running = await openStored(disk, 2)
  await fill(running, young, 1, 4)
  await fill(running, rolled, 2, 3)
  await settle()
  // The last mark is on disk: damage to the last group is known as such.
  running.clock.advance(25)
  await settle()
  const truth = [
    await truthOf(running, 'rolled', rolled, 2),
    await truthOf(running, 'young', young, 1),
  ]
  const open = new Set<string>()
  for (const { name, active } of running.metadata.state.topics.values()) {
    for (const range of active) open.add(`${name} ${openOf(range)?.segment}`)
  }
  return { image: sim.snapshot(), truth, open }
}

/** Whole directories may be refused for these only; damage elsewhere costs no more than its segment. */
const REFUSES: Readonly<Record<string, readonly string[]>> = {
  'node.json': ['DATA_DIR_UNUSABLE', 'DATA_DIR_NEWER', 'DATA_DIR_MISMATCH'],
  journal: ['DAMAGED', 'DATA_DIR_MISMATCH', 'DATA_DIR_NEWER'],
}

/** 'right', or what was said. */
async function judge(written: Written, path: string, byte: number): Promise<string> {
  const sim = simDisk({ image: written.image })
  sim.flipBit(path, byte, byte % 8)
  const at = `bit ${byte % 8} of byte ${byte} in ${path}`
  const said = await start(written, sim.mount(), path, at)
  if (said === 'right' || said.startsWith('refused')) return said
  const may = mayCost(written, path, byte)
  for (const segment of said.replace('damaged: ', '').split(', ')) {
    assert.ok(may(segment), `${at}: ${segment} is not served`)
  }
  // Damage that was found once is found again, whatever the first start did to the WAL.
  sim.crash({ keepUnsynced: true })
  assert.equal(await start(written, sim.mount(), path, `${at}, second start`), said)
  return said
}

async function start(
  written: Written,
  disk: Parameters<typeof openStored>[0],
  path: string,
  at: string,
): Promise<string> {
  let running: StoredBroker
  try {
    running = await openStored(disk, 3)
  } catch (error) {
    if (!(error instanceof EastGuardError)) throw new Error(at, { cause: error })
    const may = REFUSES[path.split('/')[0] as string] ?? []
    assert.ok(may.includes(error.code), `${at}: refused with ${error.code}: ${error.message}`)
    assert.ok(error.message.length > 20, at)
    return `refused: ${error.code}`
  }
  const names = [...running.metadata.state.topicsByName.keys()].sort()
  assert.deepEqual(names, ['rolled', 'young'], at)
  const damaged = new Set<string>()
  for (const { topicId, name, batches } of written.truth) {
    const topic = running.metadata.state.topics.get(topicId)
    assert.ok(topic !== undefined)
    for (const [p, expected] of batches.entries()) {
      for (const { segment, firstOffset, endOffset } of segmentsOf(topic, p)) {
        const note = `${at}, ${name} ${p}, segment ${segment.segment}`
        const read = await readAll(running, topicId, p, firstOffset, endOffset)
        const there = expected.filter(
          ({ offset }) => offset >= firstOffset && offset < (endOffset ?? Number.MAX_VALUE),
        )
        if (compare(read, there, note)) damaged.add(`${name} ${segment.segment}`)
      }
    }
  }
  return damaged.size === 0 ? 'right' : `damaged: ${[...damaged].join(', ')}`
}

/** True when damage was told. */
function compare(read: ReadPartition, expected: readonly ReadBatch[], at: string): boolean {
  const { batches, error } = read
  assert.deepEqual(batches, expected.slice(0, batches.length), at)
  if (error === undefined) {
    assert.equal(batches.length, expected.length, `${at}: a silent end`)
    return false
  }
  assert.equal(error.code, 'DAMAGED', `${at}: ${error.message}`)
  return true
}

/** The segments that a flip in this file may cost. */
function mayCost({ open }: Written, path: string, byte: number): (segment: string) => boolean {
  const file = /^topics\/(\w+)-[0-9a-f]+\/range-0\/0*(\d+)\.(.+)$/.exec(path)
  if (file === null) return (segment) => path.startsWith('wal/') && open.has(segment)
  const [, name, segment, extension] = file
  // An index is derived, and a header page says nothing that the blocks do not say.
  const spare = extension === 'index' || (extension === 'log' && byte < HEADER_PAGE_BYTES)
  return (one) => !spare && one === `${name} ${segment}`
}

test('a bit flipped anywhere in a data directory: exactly the right records, or what is damaged is said', async (t) => {
  const all = await written()
  const outcomes = new Map<string, number>()
  let count = 0
  let skip = 0
  const whole = simDisk({ image: all.image })
  for (const path of whole.paths()) {
    const bytes = whole.bytesOf(path)
    for (let byte = 0; byte < bytes.length; byte++) {
      skip += bytes[byte] === 0 && bytes[byte + 16] === 0 ? 1 : 8
      if (!ALL && skip < STRIDE) continue
      skip = 0
      const outcome = await judge(all, path, byte)
      const said = `${path.replace(/\d{6,}|[0-9a-f]{32}/g, '*')} ${outcome}`
      outcomes.set(said, (outcomes.get(said) ?? 0) + 1)
      count++
    }
  }
  t.diagnostic(`${count} positions`)
  for (const [said, times] of outcomes) t.diagnostic(`${times} x ${said}`)
  const kinds = new Set([...outcomes.keys()].map((said) => said.split(/[ :]/)[1]))
  assert.deepEqual(kinds, new Set(['damaged', 'refused', 'right']), 'the test reached all of it')
})

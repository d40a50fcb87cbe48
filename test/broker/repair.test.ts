// Repair of a damaged data directory: it says first, exactly, what is lost, changes nothing until that is accepted, and then
// everything else is served: no record wrong, no offset twice, whatever was hit and wherever a crash came in between.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError } from '../../src/base/errors.ts'
import { prng } from '../../src/base/prng.ts'
import type { TopicId } from '../../src/model/ids.ts'
import { type Disk, DiskError } from '../../src/ports/disk.ts'
import { repairDataDir } from '../../src/server/repair.ts'
import { type DiskImage, type SimDisk, simDisk } from '../../src/sim/ports/disk.ts'
import type { DirSurvey } from '../../src/storage/repair/survey.ts'
import { keptLog, manualClock, seededRandom, settle } from '../storage/support/ports.ts'
import { untilCrash } from '../storage/support/until-crash.ts'
import {
  fill,
  makeTopic,
  openStored,
  plainBatch,
  produce,
  type ReadBatch,
  readAll,
  SMALL,
  type StoredBroker,
  type Truth,
  truthOf,
} from './support/stored-broker.ts'

const ALL: boolean = process.env['EASTGUARD_FLIP_ALL'] === '1'
const STRIDE = 1500
const CRASH_STRIDE = 23

interface Written {
  readonly image: DiskImage
  readonly truth: readonly Truth[]
}

async function repair(disk: Disk, accept: boolean): Promise<DirSurvey> {
  let found: DirSurvey | undefined
  await repairDataDir({
    ports: { disk, clock: manualClock(), random: seededRandom(77), log: keptLog() },
    settings: { ...SMALL, displayName: 'test', journalFileBytes: 16 * 1024 },
    accept: async (survey) => {
      found = survey
      return accept
    },
  })
  assert.ok(found !== undefined)
  return found
}

/** Sealed segments, an open one that is in its file in part, and one that only the WAL has. */
async function written(): Promise<Written> {
  const sim = simDisk()
  const disk = sim.mount()
  const first = await openStored(disk, 1)
  const rolled = await makeTopic(first, 'rolled', { partitions: 2, segmentEntries: 8 })
  await fill(first, rolled, 2, 20)
  await first.close()
  const running = await openStored(disk, 2)
  const young = await makeTopic(running, 'young', { partitions: 1 })
  await fill(running, rolled, 2, 3)
  await running.store.flush()
  await fill(running, young, 1, 4)
  await fill(running, rolled, 2, 2)
  await settle()
  running.clock.advance(25)
  await settle()
  const truth = [
    await truthOf(running, 'rolled', rolled, 2),
    await truthOf(running, 'young', young, 1),
  ]
  return { image: sim.snapshot(), truth }
}

/** Reads on behind every hole. */
async function readOver(
  running: StoredBroker,
  topicId: TopicId,
  partition: number,
): Promise<{ batches: ReadBatch[]; lost: Set<number>; end: number }> {
  const batches: ReadBatch[] = []
  const lost = new Set<number>()
  for (let offset = 0; ; ) {
    const read = await readAll(running, topicId, partition, offset)
    batches.push(...read.batches)
    if (read.error === undefined) return { batches, lost, end: read.end }
    assert.equal(read.error.code, 'RECORDS_LOST', read.error.message)
    const last = read.batches.at(-1)
    const from = last === undefined ? offset : last.offset + last.records
    offset = Number(read.error.detail['nextOffset'])
    assert.ok(offset > from, 'reading goes on behind the hole')
    for (let o = from; o < offset; o++) lost.add(o)
  }
}

/** What the report says is lost of a partition. */
function toldOf(survey: DirSurvey, topicId: TopicId, partition: number): Set<number> {
  const told = new Set<number>()
  for (const { facts, offsets } of survey.losses) {
    if (facts?.key.topicId !== topicId) continue
    for (const { partition: p, from, end } of offsets) {
      for (let o = from; p === partition && o < end; o++) told.add(o)
    }
  }
  return told
}

/** True when the report says that the end of the topic's open segment is not known. */
function endUnknown(survey: DirSurvey, topicId: TopicId): boolean {
  const unknown = survey.losses.filter(
    ({ entries, file }) => entries === undefined && !file.endsWith('.state'),
  )
  return unknown.some(({ facts }) => facts === undefined || facts.key.topicId === topicId)
}

/** The repaired directory serves exactly what was not said to be lost, and takes more behind it. */
async function check(written: Written, survey: DirSurvey, disk: Disk, at: string): Promise<void> {
  const running = await openStored(disk, 9)
  for (const { topicId, name, batches, ends } of written.truth) {
    for (const [p, expected] of batches.entries()) {
      const note = `${at}, ${name} ${p}`
      const read = await readOver(running, topicId, p)
      const told = toldOf(survey, topicId, p)
      assert.deepEqual(
        [...read.lost],
        [...told].sort((a, b) => a - b),
        `${note}: lost as told`,
      )
      const there = expected.filter(({ offset }) => !told.has(offset))
      if (endUnknown(survey, topicId)) {
        assert.deepEqual(read.batches, there.slice(0, read.batches.length), note)
      } else {
        assert.deepEqual(read.batches, there, note)
        assert.equal(read.end, ends[p], `${note}: offsets go on where they ended`)
      }
      const more = plainBatch(80, 2, 5000, 99)
      assert.equal(await produce(running, topicId, p, more), read.end, note)
      assert.equal((await readOver(running, topicId, p)).batches.length, read.batches.length + 1)
    }
  }
  await running.close()
}

async function judge(written: Written, path: string, byte: number): Promise<string> {
  const at = `bit ${byte % 8} of byte ${byte} in ${path}`
  const sim = simDisk({ image: written.image })
  sim.flipBit(path, byte, byte % 8)
  const before = contentOf(sim)
  let survey: DirSurvey
  try {
    survey = await repair(sim.mount(), false)
  } catch (error) {
    if (!(error instanceof EastGuardError)) throw new Error(at, { cause: error })
    assert.ok(/^(node\.json|journal)/.test(path), `${at}: ${error.message}`)
    return 'refused'
  }
  assert.deepEqual(contentOf(sim), before, `${at}: a look changes nothing`)
  // As often as not the broker has started on the damage before the operator comes.
  if (byte % 2 === 0 && path !== 'damaged') {
    const started = await openStored(sim.mount(), 5)
    await started.close()
    survey = await repair(sim.mount(), false)
  }
  await repair(sim.mount(), true)
  const after = await repair(sim.mount(), false)
  assert.deepEqual(after.losses, [], `${at}: nothing is left to repair`)
  await check(written, survey, sim.mount(), at)
  return survey.losses.length === 0 ? 'right' : 'repaired'
}

function contentOf(sim: SimDisk): unknown {
  return sim.paths().map((path) => [path, Buffer.from(sim.bytesOf(path)).toString('base64')])
}

test('a bit flipped anywhere: what repair says is lost is lost, all else is served, and writing goes on', async (t) => {
  const all = await written()
  const whole = simDisk({ image: all.image })
  const outcomes = new Map<string, number>()
  let skip = 0
  for (const path of whole.paths()) {
    const bytes = whole.bytesOf(path)
    for (let byte = 0; byte < bytes.length; byte++) {
      skip += bytes[byte] === 0 && bytes[byte + 16] === 0 ? 1 : 24
      if (!ALL && skip < STRIDE) continue
      skip = 0
      const said = `${path.replace(/\d{6,}|[0-9a-f]{32}/g, '*')} ${await judge(all, path, byte)}`
      outcomes.set(said, (outcomes.get(said) ?? 0) + 1)
    }
  }
  for (const [said, times] of outcomes) t.diagnostic(`${times} x ${said}`)
})

test('many bits flipped in segments and write-ahead log at once: no record wrong, no loss untold', async () => {
  const all = await written()
  for (let seed = 1; seed <= (ALL ? 1000 : 25); seed++) {
    const chance = prng(seed)
    const sim = simDisk({ image: all.image })
    const paths = sim.paths().filter((path) => /^topics.*(log|index)$|^wal/.test(path))
    for (let flips = 1 + chance.below(8); flips > 0; flips--) {
      const path = paths[chance.below(paths.length)] as string
      const bytes = sim.bytesOf(path)
      let byte = chance.below(bytes.length)
      while (bytes[byte] === 0 && chance.below(50) > 0) byte = chance.below(bytes.length)
      sim.flipBit(path, byte, chance.below(8))
    }
    if (chance.below(2) === 0) await (await openStored(sim.mount(), 5)).close()
    const survey = await repair(sim.mount(), true)
    await check(all, survey, sim.mount(), `seed ${seed}`)
  }
})

test('a file that was put back is served again, and nothing is called lost', async () => {
  const all = await written()
  const sim = simDisk({ image: all.image })
  // With its index the block would be found all the same.
  await sim.mount().remove(sim.paths().find((path) => /rolled.*2\.index$/.test(path)) ?? '')
  flipIn(sim, /rolled.*2\.log$/, 4096 + 30)
  const marked = await openStored(sim.mount(), 5)
  await marked.close()
  flipIn(sim, /rolled.*2\.log$/, 4096 + 30)
  const still = await openStored(sim.mount(), 6)
  assert.equal((await readAll(still, all.truth[0]?.topicId as TopicId, 0)).error?.code, 'DAMAGED')
  await still.close()
  const { losses, findings } = await repair(sim.mount(), true)
  assert.deepEqual(losses, [])
  assert.equal(findings.length, 1)
  await check(all, { losses, findings, notices: [], states: [] }, sim.mount(), 'put back')
})

test('a sealed segment whose file is gone or cut off between two blocks is known at the start, and lost as told', async () => {
  for (const length of [undefined, 4096]) {
    const all = await written()
    const sim = simDisk({ image: all.image })
    const disk = sim.mount()
    for (const path of sim.paths().filter((each) => /rolled.*2\.(log|index)$/.test(each))) {
      if (length === undefined || path.endsWith('.index')) await disk.remove(path)
      else await (await disk.open(path, { mode: 'write' })).truncate(length)
    }
    const started = await openStored(disk, 5)
    const key = { topicId: all.truth[0]?.topicId as TopicId, range: 0, segment: 2 }
    assert.match(String(started.store.find(key)?.damage), /sealed at 8 entries, 0 are left/)
    await started.close()
    const survey = await repair(disk, true)
    assert.deepEqual(
      survey.losses.map(({ entries }) => entries),
      [{ first: 0, end: 8 }],
    )
    await check(all, survey, disk, `cut to ${length}`)
  }
})

test('what the disk itself cannot read stops a start and marks nothing; repair goes round it', async () => {
  const all = await written()
  const sim = simDisk({ image: all.image })
  const disk = sim.mount()
  const path = sim.paths().find((each) => /rolled.*2\.log$/.test(each)) ?? ''
  await disk.remove(path.replace('.log', '.index'))
  let bad = true
  sim.before = ({ kind, path: at, to, position = 0, bytes = 0 }) => {
    // The file that takes its place lies elsewhere on the disk.
    if (kind === 'rename' && to === path) bad = false
    if (bad && kind === 'read' && at === path && position + bytes > 4200) {
      throw new DiskError('io', path, `${path} cannot be read`)
    }
  }
  await assert.rejects(openStored(disk, 5), { message: /cannot be read/ })
  const { losses } = await repair(disk, false)
  assert.ok(losses.length > 0)
  const survey = await repair(disk, true)
  assert.equal(bad, false)
  await check(all, survey, disk, 'a bad page')
})

/** Something bad in a segment's middle, in its WAL, in a range state, and in the list of what is bad. */
const HURTS: Readonly<Record<string, (sim: SimDisk, truth: readonly Truth[]) => void>> = {
  'a block header of a sealed segment': (sim) => flipIn(sim, /rolled.*2\.log$/, 4096 + 30),
  'an entry of a sealed segment, and its index': (sim) => {
    flipIn(sim, /rolled.*2\.log$/, -1)
    flipIn(sim, /rolled.*2\.index$/, 20)
  },
  'the last entry that only the write-ahead log has': (sim, truth) =>
    flipEntry(sim, truth[1] as Truth, 'last'),
  'an entry of the write-ahead log with others behind it': (sim, truth) =>
    flipEntry(sim, truth[1] as Truth, 'first'),
  'a range state': (sim) => flipIn(sim, /rolled.*\.state$/, -1),
  'all of a segment file': (sim) => {
    for (let page = 0; page < 3; page++) flipIn(sim, /rolled.*1\.log$/, page * 4096 + 1)
  },
}

function flipIn(sim: SimDisk, which: RegExp, byte: number): void {
  const path = sim.paths().find((each) => which.test(each))
  assert.ok(path !== undefined, String(which))
  const { length } = sim.bytesOf(path)
  if (byte < length) sim.flipBit(path, byte < 0 ? length + byte : byte, 0)
}

/** A byte of the first or last batch of the topic that the WAL has. */
function flipEntry(sim: SimDisk, { topicId }: Truth, which: 'first' | 'last'): void {
  const id = Buffer.from(topicId, 'hex')
  for (const path of sim.paths().filter((each) => each.startsWith('wal/'))) {
    const bytes = Buffer.from(sim.bytesOf(path))
    const at = which === 'first' ? bytes.indexOf(id) : bytes.lastIndexOf(id)
    if (at >= 0) sim.flipBit(path, at + 84 + 70, 1)
  }
}

async function servedBy(written: Written, disk: Disk): Promise<unknown> {
  const running = await openStored(disk, 9)
  const served: unknown[] = []
  for (const { topicId, batches } of written.truth) {
    for (const p of batches.keys()) {
      const { lost, ...read } = await readOver(running, topicId, p)
      served.push({ ...read, lost: [...lost] })
    }
  }
  await running.close()
  return served
}

for (const [what, hurt] of Object.entries(HURTS)) {
  test(`a repair of ${what} that crashes at any operation and is done again ends the same`, async (t) => {
    const all = await written()
    const hurtDisk = (): SimDisk => {
      const sim = simDisk({ image: all.image, seed: 7 })
      hurt(sim, all.truth)
      return sim
    }
    const once = hurtDisk()
    const before = once.operations
    await repair(once.mount(), true)
    const operations = once.operations - before
    const expected = await servedBy(all, once.mount())
    for (let at = 1; at <= operations; at += ALL ? 1 : CRASH_STRIDE) {
      const sim = hurtDisk()
      const keepUnsynced = ([true, false, 'some'] as const)[at % 3] ?? true
      await untilCrash(sim, sim.operations + at, { keepUnsynced }, () => repair(sim.mount(), true))
      await repair(sim.mount(), true)
      assert.deepEqual((await repair(sim.mount(), false)).losses, [], `operation ${at}`)
      assert.deepEqual(await servedBy(all, sim.mount()), expected, `operation ${at}`)
    }
    t.diagnostic(`${operations} operations`)
  })
}

test('a start on a damaged write-ahead log that crashes at any operation forgets no damage and nothing that was whole', async (t) => {
  const all = await written()
  const hurtDisk = (): SimDisk => {
    const sim = simDisk({ image: all.image, seed: 9 })
    flipEntry(sim, all.truth[1] as Truth, 'first')
    return sim
  }
  const once = hurtDisk()
  const { losses } = await repair(once.mount(), true)
  const expected = await servedBy(all, once.mount())
  assert.ok(losses.length > 0)
  const probe = hurtDisk()
  const before = probe.operations
  await (await openStored(probe.mount(), 5)).close()
  const operations = probe.operations - before
  for (let at = 1; at <= operations; at += ALL ? 1 : 9) {
    const sim = hurtDisk()
    const keepUnsynced = ([true, false, 'some'] as const)[at % 3] ?? true
    await untilCrash(sim, sim.operations + at, { keepUnsynced }, async () => {
      await (await openStored(sim.mount(), 5)).close()
    })
    const again = await openStored(sim.mount(), 6)
    const read = await readAll(again, (all.truth[1] as Truth).topicId, 0)
    assert.equal(read.error?.code, 'DAMAGED', `operation ${at}`)
    await again.close()
    const survey = await repair(sim.mount(), true)
    assert.deepEqual(
      survey.losses.map(({ entries, offsets }) => ({ entries, offsets })),
      losses.map(({ entries, offsets }) => ({ entries, offsets })),
      `operation ${at}`,
    )
    assert.deepEqual(await servedBy(all, sim.mount()), expected, `operation ${at}`)
  }
  t.diagnostic(`${operations} operations`)
})

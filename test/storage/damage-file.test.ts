// The list of damaged segments when an operator accepts what is lost: what others hold too is not his to accept.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { topicId } from '../../src/model/ids.ts'
import { keyText, type SegmentKey } from '../../src/model/segment-key.ts'
import { simDisk } from '../../src/sim/ports/disk.ts'
import { writeChecked } from '../../src/storage/checked-file.ts'
import {
  forgetDamage,
  forgetSegmentDamage,
  readDamage,
  renewDamage,
  unreadableDamage,
} from '../../src/storage/recovery/damage-file.ts'
import type { Catalog } from '../../src/storage/types.ts'

function key(segment: number): SegmentKey {
  return { topicId: topicId('66'.repeat(16)), range: 0, segment }
}

const ALONE = { key: key(1), elsewhere: false }
const SHARED = { key: key(2), elsewhere: true }
const SEALED = { key: key(3), endEntry: 9, elsewhere: true }
const CATALOG: Catalog = { topicName: () => 't', segments: () => [ALONE, SHARED, SEALED] }

async function listed(segments: readonly SegmentKey[]): Promise<ReturnType<typeof simDisk>> {
  const sim = simDisk()
  const marks = Object.fromEntries(segments.map((each) => [keyText(each), 'lost']))
  await writeChecked(sim.mount(), 'damaged', new TextEncoder().encode(JSON.stringify(marks)))
  return sim
}

async function marked(sim: ReturnType<typeof simDisk>): Promise<readonly string[]> {
  return [...(await readDamage(sim.mount())).keys()]
}

test('marks of segments that are nowhere else go, those of others stay', async () => {
  const sim = await listed([key(1), key(2), key(3)])
  await forgetDamage(sim.mount(), CATALOG)
  assert.deepEqual(await marked(sim), [keyText(key(2)), keyText(key(3))])
  const alone = await listed([key(1)])
  await forgetDamage(alone.mount(), CATALOG)
  assert.deepEqual(alone.paths(), [])
})

test('one mark goes with the copy that was given up', async () => {
  const sim = await listed([key(2), key(3)])
  await forgetSegmentDamage(sim.mount(), key(3))
  await forgetSegmentDamage(sim.mount(), key(1))
  assert.deepEqual(await marked(sim), [keyText(key(2))])
})

test('in the place of a list that nobody can read comes one with all open segments that others have: each may have been on it', async () => {
  const sim = await listed([key(2)])
  sim.flipBit('damaged', 20, 2)
  assert.ok(await unreadableDamage(sim.mount()))
  await renewDamage(sim.mount(), CATALOG)
  assert.deepEqual(await marked(sim), [keyText(key(2))])
})

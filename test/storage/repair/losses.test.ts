import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fillsOf, gapsOf, type Placed } from '../../../src/storage/repair/losses.ts'

const FIRST_PARTITION = 4
const PARTITIONS = 3

/** Entries as a leader numbers them, and which of them are left. */
const HISTORY: fc.Arbitrary<readonly (readonly [number, number, boolean])[]> = fc.array(
  fc.tuple(fc.nat(PARTITIONS - 1), fc.integer({ min: 1, max: 4 }), fc.boolean()),
  { maxLength: 24 },
)

test('whatever is lost: the gaps are what was there, and filled they leave entries and offsets dense', () => {
  fc.assert(
    fc.property(HISTORY, fc.boolean(), (history, endKnown) => {
      const firstOffsets = [10, 0, 7]
      const next = firstOffsets.slice()
      const seen = firstOffsets.slice()
      const known: Placed[] = []
      const lost = new Set<string>()
      for (const [entryNumber, [at, recordCount, left]] of history.entries()) {
        const baseOffset = next[at] ?? 0
        const partition = FIRST_PARTITION + at
        next[at] = baseOffset + recordCount
        if (left) {
          known.push({ entryNumber, partition, baseOffset, recordCount })
          seen[at] = next[at] ?? 0
        } else {
          for (let o = baseOffset; o < baseOffset + recordCount; o++) lost.add(`${partition}:${o}`)
        }
      }
      const endOffsets = endKnown ? next : seen
      const bounds = { firstPartition: FIRST_PARTITION, firstOffsets, endOffsets }
      const gaps = gapsOf(known, { ...bounds, endEntry: history.length })
      const found: string[] = []
      for (const { offsets } of gaps) {
        for (const { partition, from, end } of offsets) {
          for (let o = from; o < end; o++) found.push(`${partition}:${o}`)
        }
      }
      assert.equal(new Set(found).size, found.length, 'no offset twice')
      for (const offset of found) assert.ok(lost.has(offset), `${offset} was not lost`)
      if (endKnown) assert.equal(found.length, lost.size)
      assertDense([...known], gaps, firstOffsets, endOffsets, history.length)
    }),
    { numRuns: 2000 },
  )
})

function assertDense(
  known: Placed[],
  gaps: ReturnType<typeof gapsOf>,
  firstOffsets: readonly number[],
  endOffsets: readonly number[],
  endEntry: number,
): void {
  const next = firstOffsets.slice()
  let entry = 0
  const pass = ({ entryNumber, partition, baseOffset, recordCount }: Placed): void => {
    const at = partition - FIRST_PARTITION
    assert.equal(entryNumber, entry++)
    assert.equal(baseOffset, next[at])
    next[at] = baseOffset + recordCount
  }
  for (const gap of gaps) {
    while ((known[0]?.entryNumber ?? endEntry) < gap.first) pass(known.shift() as Placed)
    for (const fill of fillsOf(gap, FIRST_PARTITION, next[0] ?? 0)) pass(fill)
  }
  for (const one of known) pass(one)
  assert.equal(entry, endEntry)
  assert.deepEqual(next, endOffsets)
}

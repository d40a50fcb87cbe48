import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Truncated } from '../../../src/base/cursor.ts'
import { prng } from '../../../src/base/prng.ts'
import { decodeCommand, encodeCommand } from '../../../src/core/metadata/command-codec.ts'
import { stateFault } from '../../../src/core/metadata/invariants.ts'
import { segmentAt, segmentsOf } from '../../../src/core/metadata/lookup.ts'
import { apply, emptyState } from '../../../src/core/metadata/machine.ts'
import { decodeSnapshot, encodeSnapshot } from '../../../src/core/metadata/snapshot.ts'
import type { Topic } from '../../../src/core/metadata/types.ts'
import { randomCommand, randomRun } from './support.ts'

const seeds = fc.integer({ min: 0, max: 2 ** 31 })
const STEPS = 120

test('I9: active ranges tile every topic, segment numbers are dense and offsets never go back, at every index', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const state = emptyState()
      randomRun(state, seed, STEPS, (command) => {
        assert.equal(stateFault(state), undefined, command.kind)
      })
    }),
    { numRuns: 150 },
  )
})

test('any command but AllocateProducerIds, applied twice, has the effect of once', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const state = emptyState()
      randomRun(state, seed, STEPS, (command, index) => {
        if (index % 4 !== 0 || command.kind === 'AllocateProducerIds') return
        const again = decodeSnapshot(encodeSnapshot(state))
        const first = encodeSnapshot(again)
        apply(again, command, index + 1)
        const second = encodeSnapshot(again)
        // Bytes 2 to 10 are the applied index.
        assert.deepEqual(second.subarray(10), first.subarray(10), command.kind)
      })
    }),
    { numRuns: 60 },
  )
})

test('a snapshot and the commands after it give the same state as all commands, to the byte', () => {
  fc.assert(
    fc.property(seeds, fc.integer({ min: 0, max: STEPS }), (seed, cut) => {
      const state = emptyState()
      let snapshot = encodeSnapshot(state)
      const after: { readonly command: Uint8Array; readonly index: number }[] = []
      randomRun(state, seed, STEPS, (command, index) => {
        if (index <= cut) snapshot = encodeSnapshot(state).slice()
        else after.push({ command: encodeCommand(command).slice(), index })
      })
      const replayed = decodeSnapshot(snapshot)
      for (const { command, index } of after) apply(replayed, decodeCommand(command), index)
      assert.deepEqual(encodeSnapshot(replayed), encodeSnapshot(state))
    }),
    { numRuns: 80 },
  )
})

test('commands keep their meaning through their bytes', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      randomRun(emptyState(), seed, STEPS, (command) => {
        assert.deepEqual(decodeCommand(encodeCommand(command)), command)
      })
    }),
    { numRuns: 60 },
  )
})

test('bytes that are no command or snapshot are refused as such, and change nothing', () => {
  fc.assert(
    fc.property(seeds, fc.uint8Array({ maxLength: 200 }), (seed, noise) => {
      const chance = prng(seed)
      const state = emptyState()
      randomRun(state, seed, 40, () => {})
      const snapshot = encodeSnapshot(state)
      const command = encodeCommand(randomCommand(state, chance))
      for (const bytes of [noise, spoilt(snapshot, chance), spoilt(command, chance)]) {
        onlyTruncated(() => decodeSnapshot(bytes))
        onlyTruncated(() => apply(state, decodeCommand(bytes), state.appliedIndex + 1))
        assert.equal(stateFault(state), undefined)
      }
    }),
    { numRuns: 400 },
  )
})

test('I11: every offset above the log start lies in exactly the segment that the partition had it in', () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const state = emptyState()
      randomRun(state, seed, STEPS, (_command, index) => {
        if (index % 10 !== 0) return
        for (const topic of state.topics.values()) checkLineage(topic)
      })
    }),
    { numRuns: 60 },
  )
})

/** Compares the two lookups with each other and with the topic's log starts. */
function checkLineage(topic: Topic): void {
  for (let partition = 0; partition < topic.policy.partitions; partition++) {
    const all = segmentsOf(topic, partition)
    assert.ok(all.length > 0)
    assert.equal(all.at(-1)?.segment.state, 'open')
    assert.ok((all[0]?.firstOffset ?? 0) <= (topic.logStartOffsets[partition] ?? 0))
    for (const [i, one] of all.entries()) {
      const next = all[i + 1]
      assert.equal(one.endOffset, next?.firstOffset)
      assert.ok(next === undefined || next.segment.segment > one.segment.segment)
      for (
        let offset = one.firstOffset;
        offset < (one.endOffset ?? one.firstOffset + 2);
        offset++
      ) {
        const found = segmentAt(topic, partition, offset)
        assert.equal(found?.segment, one.segment)
        assert.equal(found?.endOffset, one.endOffset)
      }
    }
    const before = (all[0]?.firstOffset ?? 0) - 1
    assert.equal(segmentAt(topic, partition, before), undefined)
  }
}

function spoilt(bytes: Uint8Array, chance: ReturnType<typeof prng>): Uint8Array {
  const copy = bytes.slice(0, chance.below(4) === 0 ? chance.below(bytes.length + 1) : undefined)
  for (let i = 0; i <= chance.below(3); i++) {
    if (copy.length > 0) copy[chance.below(copy.length)] = chance.below(256)
  }
  return copy
}

function onlyTruncated(run: () => void): void {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof Truncated, String(error))
  }
}

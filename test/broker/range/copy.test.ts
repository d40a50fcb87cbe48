import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RangeContext } from '../../../src/broker/range/context.ts'
import { RangeCopy } from '../../../src/broker/range/copy.ts'
import { StagedBook } from '../../../src/broker/replica/staged.ts'
import type { Range, Topic } from '../../../src/core/metadata/types.ts'

/** A range whose segments up to this one are there, the last of them open under a token of its own. */
function rangeAt(segment: number): Range {
  const segments = Array.from({ length: segment }, (_, i) => ({
    segment: i + 1,
    state: i + 1 < segment ? 'sealed' : 'open',
    token: `token-${i + 1}`,
    replicas: [],
    firstOffsets: [0],
    endEntry: 5,
  }))
  return { range: 0, firstPartition: 0, endPartition: 1, segments } as unknown as Range
}

test('who is woken by a roll, and loads the range, asks for the state of the segment that is open now', () => {
  const asked: string[] = []
  const context = {
    staged: new StagedBook(),
    seals: { seal: () => {} },
    over: () => {},
    reachable: () => [],
    store: {
      find: () => undefined,
      loadState: (key: { readonly segment: number }, token: string) => {
        asked.push(`${key.segment} ${token}`)
        return new Promise(() => {})
      },
    },
  } as unknown as RangeContext
  const topic = { topicId: '0'.repeat(32), name: 't' } as unknown as Topic
  const copy = new RangeCopy(context, topic, rangeAt(1), false)
  copy.watchers.add(0, { wake: () => void copy.ensureLoaded() })
  assert.ok(copy.update(topic, rangeAt(2)))
  assert.deepEqual(asked, ['2 token-2'])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ShardCopy } from '../../../src/broker/shards/copy.ts'
import { FeedFollower } from '../../../src/broker/shards/feed-follower.ts'
import { emptyState } from '../../../src/core/metadata/machine.ts'
import { encodeSnapshot } from '../../../src/core/metadata/snapshot.ts'
import { node } from '../../core/metadata/support.ts'
import { manualClock } from '../../storage/support/ports.ts'

test('a snapshot over a slow link is not begun anew while its parts come', () => {
  const clock = manualClock()
  const copy = new ShardCopy(0, { changed: () => {}, applied: () => {}, advanced: () => {} })
  let asked = 0
  const follower = new FeedFollower({
    clock,
    leaderOf: () => ({ node: node(1) }),
    anyone: () => node(2),
    send: () => asked++,
  })
  follower.tick(copy)
  const data = encodeSnapshot({ ...emptyState(), appliedIndex: 7 })
  const members = { voters: [node(1)], learners: [] }
  for (let offset = 0; offset < data.length; offset++) {
    const bytes = data.subarray(offset, offset + 1)
    const part = {
      kind: 'feed-snapshot',
      shard: 0,
      index: 7,
      term: 2,
      members,
      offset,
      bytes,
    } as const
    follower.toldSnapshot(node(1), copy, { ...part, totalBytes: data.length })
    clock.advance(1500)
    follower.tick(copy)
  }
  assert.equal(copy.appliedIndex, 7)
  assert.equal(asked, 1)
})

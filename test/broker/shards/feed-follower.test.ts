import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ShardCopy } from '../../../src/broker/shards/copy.ts'
import { FeedFollower } from '../../../src/broker/shards/feed-follower.ts'
import { FeedSource } from '../../../src/broker/shards/feed-source.ts'
import { encodeShardSnapshot } from '../../../src/broker/shards/records.ts'
import { Replica } from '../../../src/broker/shards/replica.ts'
import { apply, emptyState } from '../../../src/core/metadata/machine.ts'
import { encodeSnapshot } from '../../../src/core/metadata/snapshot.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import { simDisk } from '../../../src/sim/ports/disk.ts'
import { openJournal } from '../../../src/storage/journal/journal.ts'
import type { PeerMessage } from '../../../src/wire/peer/types.ts'
import { createTopic, node, topic } from '../../core/metadata/support.ts'
import {
  keptLog,
  type ManualClock,
  manualClock,
  seededRandom,
} from '../../storage/support/ports.ts'

const SHARD = 0
const TOPICS = 4000
/** What one message may have. */
const PART_BYTES = 256 * 1024
const SOURCE = node(1)
const FOLLOWER = node(2)

/** A member whose log is a snapshot and nothing else. */
async function member(clock: ManualClock): Promise<{ replica: Replica; data: Uint8Array }> {
  const state = emptyState()
  for (let index = 1; index <= TOPICS; index++) {
    apply(state, createTopic({ name: `topic-${index}`, topicId: topic(index) }), index)
  }
  const data = encodeSnapshot(state)
  const members = { voters: [SOURCE], learners: [] }
  const snapshot = { index: TOPICS, term: 1, members, data }
  const log = keptLog()
  const journal = await openJournal({
    disk: simDisk().mount(),
    clock,
    random: seededRandom(1),
    log,
    fileBytes: 1024 * 1024,
    identity: { nodeIdBytes: new Uint8Array(16), bootCount: 1 },
    onFailed: assert.fail,
    mayHoldNothing: true,
  })
  const found = encodeShardSnapshot({ term: 1, vote: undefined }, snapshot)
  const host = {
    journal: { ...journal, recovered: new Map([[SHARD, { snapshot: found, records: [] }]]) },
    clock,
    log,
  }
  const options = {
    id: SOURCE,
    electionTimeoutMs: 1000,
    heartbeatMs: 100,
    appendBytesMax: PART_BYTES,
    appendsInFlightMax: 8,
    snapshotPartBytes: PART_BYTES,
    uncommittedBytesMax: PART_BYTES,
    entriesKept: 0,
    chance: () => 0,
  }
  return { replica: new Replica(SHARD, host, options, undefined, 0), data }
}

/** How often a part is sent until all have arrived over a link on which each message takes so long, and some are lost. */
async function follow(linkMs: number, isLost: (message: number) => boolean): Promise<number> {
  const clock = manualClock()
  const { replica, data } = await member(clock)
  const copy = new ShardCopy(SHARD, { changed: () => {}, applied: () => {}, advanced: () => {} })
  const link: { at: number; message: PeerMessage }[] = []
  let messages = 0
  let parts = 0
  const send = (message: PeerMessage): void => {
    if (!isLost(++messages)) link.push({ at: clock.monotonic() + linkMs, message })
  }
  const source = new FeedSource((_, message) => {
    if (message.kind === 'feed-snapshot') {
      parts++
      assert.ok(message.bytes.length <= PART_BYTES)
    }
    send(message)
  })
  const follower = new FeedFollower({
    clock,
    leaderOf: () => ({ node: SOURCE }),
    anyone: () => SOURCE,
    send: (_, message) => send(message),
  })
  for (let i = 0; i < 10_000 && copy.appliedIndex < TOPICS; i++) {
    follower.tick(copy)
    source.advanced(replica, TOPICS, clock.monotonic())
    assert.ok(link.length <= 2, 'the link is not given more than what was asked for')
    clock.advance(50)
    while ((link[0]?.at ?? Number.POSITIVE_INFINITY) <= clock.monotonic()) {
      const { message } = link.shift() as { message: PeerMessage }
      if (message.kind === 'feed-request') {
        source.asked(FOLLOWER, replica, TOPICS, message, clock.monotonic())
      } else if (message.kind === 'feed-snapshot') follower.toldSnapshot(SOURCE, copy, message)
    }
  }
  assert.deepEqual(encodeSnapshot(copy.state), data)
  return parts - Math.ceil(data.length / PART_BYTES)
}

test('a snapshot of any size reaches a copy in parts, of which one at a time is on its way', async () => {
  assert.equal(await follow(10, () => false), 0)
})

test('a snapshot over a slow link is not begun anew while its parts come', async () => {
  assert.equal(await follow(900, () => false), 0)
  // Slower than it asks again, each part may come twice, and the next is asked for all the same.
  await follow(1500, () => false)
})

test('of a snapshot that loses parts on the way only those are sent again', async () => {
  let lost = 0
  const sentAgain = await follow(10, (message) => {
    const loses = message % 4 === 0
    if (loses) lost++
    return loses
  })
  assert.ok(lost > 1 && sentAgain <= lost, `${lost} lost, ${sentAgain} sent again`)
})

test('a leader of a newer term is asked at once, however long the source before it has been silent', () => {
  const clock = manualClock()
  const copy = new ShardCopy(SHARD, { changed: () => {}, applied: () => {}, advanced: () => {} })
  let leader = SOURCE
  const asked: NodeId[] = []
  const follower = new FeedFollower({
    clock,
    leaderOf: () => ({ node: leader }),
    anyone: () => node(3),
    send: (to) => asked.push(to),
  })
  follower.tick(copy)
  clock.advance(60_000)
  follower.tick(copy)
  assert.deepEqual(asked, [SOURCE, node(3)])
  leader = node(4)
  follower.leaderChanged(SHARD)
  follower.tick(copy)
  assert.equal(asked.at(-1), node(4))
})

// A segment on three brokers: what followers take, when producers are answered, how segments end, and what becomes of copies.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError } from '../../../src/base/errors.ts'
import { ACKS_LEADER } from '../../../src/broker/sinks.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import { A, B, C, Rig } from './rig.ts'

test('a batch is acknowledged when all replicas have it on their disks, and read from each of them', async () => {
  await using rig = await Rig.make()
  assert.deepEqual(await rig.produce(A, 'one'), { offset: 0, code: undefined })
  for (const id of [A, B, C]) assert.equal(rig.entriesAt(id, 1), 1)
  for (const id of [A, B, C]) {
    await rig.until('it is readable', async () => (await rig.read(id)).length === 1)
  }
})

test('what one follower has not synced is neither acknowledged to acks=all nor readable anywhere', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  rig.node(C).store.automatic = false
  const all = rig.produce(A, 'slow')
  assert.equal((await rig.produce(A, 'leader only', ACKS_LEADER)).offset, 2)
  await rig.until('C has it', () => rig.entriesAt(C, 1) === 3)
  for (const id of [A, B]) assert.deepEqual(await rig.read(id), [0])
  rig.node(C).store.automatic = true
  rig.node(C).store.commit()
  assert.equal((await all).offset, 1)
})

test('a full segment rolls while producers wait, and offsets run on', async () => {
  await using rig = await Rig.make({ segmentEntries: 3 })
  const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => rig.produce(A, `${i}`)))
  assert.deepEqual(
    answers.map(({ offset }) => offset),
    Array.from({ length: 10 }, (_, i) => i),
  )
  assert.equal(rig.segments().length, 4)
  for (const id of [A, B, C]) {
    await rig.until('all is readable', async () => (await rig.read(id)).length === 10)
  }
})

test('a follower out of reach is left out: its batch is acknowledged by the roll, and it is mended later', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  rig.placement = [A, B]
  rig.net.cut(A, C)
  rig.net.cut(B, C)
  assert.equal((await rig.produce(A, 'meanwhile')).offset, 1)
  assert.deepEqual(rig.segments().at(-1)?.replicas, [A, B])
  assert.equal(rig.entriesAt(C, 1), 1)
  rig.net.heal()
  await rig.until('C has the rest', () => rig.entriesAt(C, 1) === 2)
  await rig.until('C serves it', async () => (await rig.read(C)).length === 2)
  assert.equal(await rig.read(C, 2), 'NOT_REPLICA')
})

test('a leader out of reach is fenced, a follower leads on, and the old leader acknowledges nothing', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  rig.net.cut(A, B)
  rig.net.cut(A, C)
  rig.unleased.add(A)
  rig.placement = []
  const { key } = rig
  const answers = await Promise.all([B, C].map((id) => rig.node(id).replicas.fence(key)))
  assert.deepEqual(
    answers.map(({ end, unsure }) => [end, unsure]),
    [
      [1, undefined],
      [1, undefined],
    ],
  )
  rig.placement = [B, C]
  rig.roll(B, key, 1, 0)
  await rig.until('B leads', () => rig.segments().length === 2)
  assert.equal((await rig.produce(B, 'after')).offset, 1)
  assert.equal((await rig.produce(A, 'lost')).code, 'NOT_LEADER')
})

test('a fenced follower takes nothing more from its leader', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  rig.placement = []
  await rig.node(B).replicas.fence(rig.key)
  const lost = rig.produce(A, 'behind the fence')
  await rig.until('A gives an end', () => rig.given.length > 0)
  assert.equal(rig.entriesAt(B, 1), 1)
  const [given] = rig.given
  assert.deepEqual([given?.end, given?.failed.map(({ node }) => node)], [2, [B]])
  rig.placement = [A, C]
  assert.equal((await lost).offset, 1)
})

test('a fence is answered when what it found in flight is durable', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  rig.placement = []
  for (const id of [B, C]) rig.node(id).store.automatic = false
  // The leader is not fenced: nobody reaches it but its followers.
  const inFlight = rig.produce(A, 'in flight')
  for (const id of [B, C]) await rig.until('it is in flight', () => rig.entriesAt(id, 1) === 2)
  const ends: number[] = []
  const answers = [B, C].map(async (id) => {
    const { end } = await rig.node(id).replicas.fence(rig.key)
    ends.push(end)
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(ends, [])
  for (const id of [B, C]) {
    const { store } = rig.node(id)
    store.automatic = true
    store.commit()
  }
  await Promise.all(answers)
  assert.deepEqual(ends, [2, 2])
  // It may be acknowledged now: the end is above it.
  assert.ok((await inFlight).offset < Math.max(...ends))
})

test('a follower takes its own next entry from its leader, and nothing else', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'one')
  const follower = rig.followerAt(B)
  const [taken] = rig.node(B).store.find(rig.key)?.entries ?? []
  assert.ok(taken !== undefined)
  const next = { ...taken, entryNumber: 1, baseOffset: 1 }
  const refused = [
    follower.take(C, [next]),
    follower.take(A, [taken]),
    follower.take(A, [{ ...next, entryNumber: 2 }]),
    follower.take(A, [{ ...next, baseOffset: 0 }]),
    follower.take(A, [{ ...next, baseOffset: 2 }]),
    follower.take(A, [{ ...next, partition: 2 }]),
  ]
  for (const why of refused) assert.ok(why !== undefined)
  assert.equal(rig.entriesAt(B, 1), 1)
  assert.equal(follower.take(A, [next]), undefined)
  assert.equal(rig.entriesAt(B, 1), 2)
})

test('a follower opens its segment to the leader alone, under the token that committed, of one start of it', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'one')
  const { key } = rig
  const { channels } = rig.net
  const asked = async (from: NodeId, boot: number, token: string): Promise<string> => {
    channels.length = 0
    const open = { kind: 'open', channel: 77, key, token, end: 1, highWatermark: 0 } as const
    rig.node(B).broker.received(from, boot, open)
    await rig.until('B answers', () => channels.some(({ channel }) => channel === 77))
    return channels.find(({ channel }) => channel === 77)?.result.kind ?? ''
  }
  assert.equal(await asked(A, 1, ''), 'ready')
  assert.equal(await asked(A, 2, ''), 'refused')
  assert.equal(await asked(A, 1, 'another'), 'refused')
  rig.net.link(C, B)
  assert.equal(await asked(C, 1, ''), 'refused')
  await rig.node(B).replicas.fence(key)
  assert.equal(await asked(A, 1, ''), 'refused')
})

test('a broker whose open segment was fenced says so until it has a successor: whoever fenced it may be gone', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  rig.placement = []
  const { key } = rig
  const saidBy = (id: NodeId): readonly string[] => {
    return [...rig.node(id).replicas.unfit()].map(({ why }) => why)
  }
  for (const id of [A, B]) {
    assert.deepEqual(saidBy(id), [])
    await rig.node(id).replicas.fence(key)
    assert.deepEqual(saidBy(id), ['fenced'])
  }
  rig.placement = [A, B, C]
  rig.roll(A, key, 1, 1)
  await rig.until('the successor is open', () => rig.segments().length === 2)
  for (const id of [A, B]) assert.deepEqual(saidBy(id), [])
})

test('without a lease nothing is accepted', async () => {
  await using rig = await Rig.make()
  rig.unleased.add(A)
  const answer = rig.produce(A, 'too early')
  assert.equal((await answer).code, 'TIMEOUT')
  assert.equal(rig.entriesAt(A, 1), 0)
})

test('a leader that is cut from all others answers what waits within five seconds', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  rig.placement = []
  rig.net.cut(A, B)
  rig.net.cut(A, C)
  const beganMs = rig.clock.monotonic()
  const inFlight = rig.produce(A, 'in flight')
  rig.unleased.add(A)
  assert.equal((await inFlight).code, 'NOT_LEADER')
  assert.ok(rig.clock.monotonic() - beganMs < 5000)
})

test('min_insync_replicas above what a segment has refuses acks=all at once, until the segment has rolled onto more', async () => {
  await using rig = await Rig.make()
  rig.placement = [A, B]
  const { key } = rig
  rig.node(A).replicas.giveEndAsked(key, 0, 'policy')
  await rig.until('two hold it', () => rig.segments().at(-1)?.replicas.length === 2)
  assert.equal((await rig.produce(A, 'two are enough')).offset, 0)
  const { topicId } = key
  await rig.metadata.propose({ kind: 'AlterTopic', topicId, changes: { minInsyncReplicas: 3 } })
  assert.equal((await rig.produce(A, 'too few')).code, 'NOT_ENOUGH_REPLICAS')
  assert.equal((await rig.produce(A, 'leader only', ACKS_LEADER)).offset, 1)
  rig.placement = [A, B, C]
  rig.node(A).replicas.giveEndAsked(rig.key, 0, 'under-replicated')
  await rig.until('three hold it', () => rig.segments().at(-1)?.replicas.length === 3)
  assert.equal((await rig.produce(A, 'three are enough')).offset, 2)
})

test('what the coordinator refuses to end is refused to whoever waits, and to who comes meanwhile', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  rig.placement = []
  rig.net.cut(A, B)
  const inFlight = rig.produce(A, 'in flight')
  await rig.until('A gives an end', () => rig.given.length > 0)
  const held = rig.produce(A, 'held')
  rig.node(A).replicas.endRefused(rig.key, 'NOT_ENOUGH_REPLICAS', 'one broker is left')
  assert.equal((await inFlight).code, 'NOT_ENOUGH_REPLICAS')
  assert.equal((await held).code, 'NOT_ENOUGH_REPLICAS')
  assert.equal((await rig.produce(A, 'meanwhile')).code, 'NOT_ENOUGH_REPLICAS')
  rig.placement = [A, C]
  await rig.until('it rolls', () => rig.segments().length === 2)
  assert.equal((await rig.produce(A, 'after')).offset, 2)
})

test('a leader that gave an end appends nothing, and acknowledges nothing, before it knows what became of it', async () => {
  await using rig = await Rig.make({ segmentEntries: 2 })
  rig.placement = []
  await Promise.all([rig.produce(A, '0'), rig.produce(A, '1')])
  await rig.until('it gives an end', () => rig.given.length > 0)
  const waits = rig.produce(A, '2')
  await rig.until('it says so again', () => rig.given.length > 2)
  assert.equal(rig.entriesAt(A, 1), 2)
  const { topicId, range, segment } = rig.key
  await rig.metadata.propose({ kind: 'CancelEnd', topicId, range, segment, attempt: 0 })
  assert.equal((await waits).offset, 2)
})

test('a broker that restarts continues no open segment, and says so', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  rig.placement = []
  const { store } = rig.node(C)
  await rig.stop(C)
  const again = rig.start(C, store, 2)
  assert.deepEqual(
    [...again.replicas.unfit()].map(({ why }) => why),
    ['restarted'],
  )
  assert.deepEqual((await again.replicas.fence(rig.key)).boot, 2)
  const answer = rig.produce(A, 'after')
  await rig.until('A gives an end', () => rig.given.length > 0)
  assert.deepEqual(
    rig.given[0]?.failed.map(({ node }) => node),
    [C],
  )
  rig.placement = [A, B, C]
  assert.equal((await answer).offset, 1)
  assert.equal((await rig.produce(A, 'all three again')).offset, 2)
  await rig.until('C has it', () => rig.entriesAt(C, 2) === 1)
})

test('a follower answers out of range for nothing above what it knows', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'one')
  assert.equal(await rig.read(A, 5), 'OFFSET_OUT_OF_RANGE')
  assert.deepEqual(await rig.read(B, 5), [])
})

test('a leader whose end is given says of nobody that he is out of range: others may have it as sealed', async () => {
  await using rig = await Rig.make({ segmentEntries: 2 })
  rig.placement = []
  await Promise.all([rig.produce(A, '0'), rig.produce(A, '1')])
  await rig.until('it gives an end', () => rig.given.length > 0)
  assert.deepEqual(await rig.read(A, 5), [])
})

test('a follower whose open segment is damaged is left out', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  await rig.until('B is up to date', async () => (await rig.read(B)).length === 1)
  const log = rig.node(B).store.find(rig.key)
  assert.ok(log !== undefined)
  log.damage = 'a bit has flipped'
  rig.placement = [A, C]
  await rig.read(B)
  assert.equal((await rig.produce(A, 'after')).offset, 1)
  assert.deepEqual(
    rig.given[0]?.failed.map(({ node }) => node),
    [B],
  )
})

test('what was staged goes when another token has committed, and a tail when the segment is settled', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'before')
  rig.placement = [A, B]
  rig.net.cut(A, C)
  assert.equal((await rig.produce(A, 'in the tail')).offset, 1)
  const tails = async (): Promise<number> => (await rig.node(B).store.staged()).tails.length
  assert.equal(await tails(), 1)
  const { topicId, range } = rig.key
  const answer = await rig.node(A).replicas.inspect({ ...rig.key, segment: 1 })
  assert.equal(answer.kind, 'whole')
  const digest = answer.kind === 'whole' ? answer.digest : ''
  await rig.metadata.propose({ kind: 'SettleSegment', topicId, range, segment: 1, digest })
  await rig.until('the tail is gone', async () => (await tails()) === 0)
})

test('a copy that others have been given is kept while nobody can say so for sure, and goes afterwards', async () => {
  await using rig = await Rig.make({ segmentEntries: 2, retentionMs: -1 })
  for (let i = 0; i < 3; i++) await rig.produce(A, `${i}`)
  const { broker, store } = rig.node(B)
  const key = { ...rig.key, segment: 1 }
  let asked = 0
  broker.parts.metadata.fresh = async () => {
    if (++asked === 1) throw new EastGuardError('METADATA_UNAVAILABLE', 'nobody answers')
  }
  await rig.metadata.propose({ kind: 'SettleSegment', ...key, digest: 'd' })
  const drop = { kind: 'ReassignSegment', change: 'drop', replica: B, seen: [] } as const
  await rig.metadata.propose({ ...drop, ...key })
  await rig.until('B asks', () => asked === 1)
  assert.ok(store.find(key) !== undefined)
  rig.node(A).replicas.giveEndAsked(rig.key, 0, 'policy')
  await rig.until('it is gone', () => store.find(key) === undefined)
})

test('what was staged in vain is not kept in memory either', async () => {
  await using rig = await Rig.make()
  rig.placement = [A, B]
  const context = rig.node(C).broker['context']
  const { staged } = context
  const next = { ...rig.key, segment: 2 }
  const later = { ...rig.key, segment: 3 }
  for (const key of [next, later]) {
    context.stored(key, 'in vain')
    staged.stored(key, 'in vain', new Uint8Array(3))
  }
  rig.node(A).replicas.giveEndAsked(rig.key, 0, 'policy')
  await rig.until('the successor is open', () => rig.segments().length === 2)
  assert.deepEqual([staged.has(next, 'in vain'), staged.has(later, 'in vain')], [false, true])
  await rig.metadata.propose({ kind: 'DeleteTopic', topicId: rig.key.topicId })
  assert.equal(staged.has(later, 'in vain'), false)
})

test('who reads a copy when it is given away is sent to others, and not out of range', async () => {
  await using rig = await Rig.make({ segmentEntries: 2 })
  for (let i = 0; i < 3; i++) await rig.produce(A, `${i}`)
  const { broker, store } = rig.node(B)
  await rig.until('B is whole', async () => (await rig.read(B)).length === 3)
  const key = { ...rig.key, segment: 1 }
  const cursor = broker.cursor(key.topicId, 0, 0)
  assert.ok(!(cursor instanceof EastGuardError))
  cursor.passed(await cursor.next(1))
  const log = store.find(key)
  assert.ok(log !== undefined)
  log.cold = true
  log.read = async () => {
    await store.dropSegments([key])
    throw new EastGuardError('OFFSET_OUT_OF_RANGE', 'the segment was dropped')
  }
  await assert.rejects(async () => cursor.next(1), { code: 'NOT_REPLICA' })
})

test('a follower whose stream has just ended serves on, and sends readers elsewhere when it has heard nothing for long', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'one')
  await rig.until('B knows', async () => (await rig.read(B)).length === 1)
  rig.placement = []
  rig.net.cut(A, B)
  assert.deepEqual(await rig.read(B, 1), [])
  await rig.until('B knows that it lags', async () => (await rig.read(B, 1)) === 'NOT_REPLICA')
})

test('who waits at the end of a follower is not sent elsewhere by a roll', async () => {
  await using rig = await Rig.make()
  await rig.produce(A, 'one')
  await rig.until('B knows', async () => (await rig.read(B)).length === 1)
  const told: (readonly number[] | string)[] = []
  const reads: Promise<unknown>[] = []
  rig.metadata.onChange(() => {
    reads.push(rig.read(B, 1).then((answer) => told.push(answer)))
  })
  rig.node(A).replicas.giveEndAsked(rig.key, 0, 'policy')
  await rig.until('the successor is open', () => rig.segments().length === 2)
  await Promise.all(reads)
  assert.deepEqual(told, [[]])
})

test('a time that no record has reached is told by the leader alone; a follower says up to where it knows of none', async () => {
  await using rig = await Rig.make()
  for (let i = 0; i < 2; i++) await rig.produce(A, `${i}`)
  await rig.until('B knows', async () => (await rig.read(B)).length === 2)
  const { topicId } = rig.key
  const later = rig.clock.wall() + 1_000_000
  const none = { offset: -1, timestamp: -1 }
  assert.deepEqual(await rig.node(A).broker.findOffset(topicId, 0, later), none)
  const known = { offset: 2, timestamp: -1 }
  assert.deepEqual(await rig.node(B).broker.findOffset(topicId, 0, later), known)
})

test('a segment that ended without entries keeps no time from being found', async () => {
  await using rig = await Rig.make({ segmentEntries: 1 })
  await rig.produce(A, '0')
  await rig.until('an empty one is open', () => rig.segments().length === 2)
  rig.node(A).replicas.giveEndAsked(rig.key, 0, 'policy')
  await rig.until('and has ended', () => rig.segments().length === 3)
  const { topicId } = rig.key
  const later = rig.clock.wall() + 1_000_000
  const none = { offset: -1, timestamp: -1 }
  assert.deepEqual(await rig.node(A).broker.findOffset(topicId, 0, later), none)
})

test('a time is looked for where all is that is old', async () => {
  await using rig = await Rig.make({ segmentEntries: 2 })
  for (let i = 0; i < 3; i++) await rig.produce(A, `${i}`)
  const key = { ...rig.key, segment: 1 }
  await rig.node(A).store.dropSegments([key])
  await assert.rejects(rig.node(A).broker.findOffset(key.topicId, 0, 0), { code: 'NOT_REPLICA' })
})

test('a damaged copy, when there is no other, is the best that an end by force can be made from, and is read up to it', async () => {
  await using rig = await Rig.make({ minInsyncReplicas: 1 })
  for (let i = 0; i < 4; i++) await rig.produce(A, `${i}`)
  const { key } = rig
  const { store } = rig.node(A)
  await rig.stop(A)
  const damaged = store.find(key)
  assert.ok(damaged !== undefined)
  damaged.damage = 'the log is lost in part'
  damaged.highWatermark = 0
  damaged.goodTo = 3
  for (const other of [B, C]) rig.net.cut(A, other)
  const { replicas } = rig.start(A, store, 2)
  rig.placement = []
  const answer = await replicas.fence(key)
  assert.deepEqual([answer.end, answer.unsure], [4, 'the log is lost in part'])

  rig.placement = [A]
  // The last entry is bad.
  rig.roll(A, key, 4, 0)
  await rig.until('it says so', () => rig.failedStages.length === 1)
  rig.roll(A, key, 3, 0)
  await rig.until('it has ended', () => rig.segments().length === 2)
  assert.equal(rig.segments()[0]?.endEntry, 3)
  assert.equal((await rig.produce(A, 'after')).offset, 3)
  await rig.until('all is read', async () => (await rig.read(A)).length === 4)
})

test('who returns with more than an end by force has left gives that up, serves none of it, and copies the rest', async () => {
  await using rig = await Rig.make({ minInsyncReplicas: 1 })
  for (let i = 0; i < 4; i++) await rig.produce(A, `${i}`)
  for (const id of [B, C])
    await rig.until('all is read', async () => (await rig.read(id)).length === 4)
  const { key } = rig
  const { store } = rig.node(A)
  await rig.stop(A)
  const damaged = store.find(key)
  assert.ok(damaged !== undefined)
  damaged.damage = 'the log is lost in part'
  damaged.highWatermark = 0
  damaged.goodTo = 2
  for (const other of [B, C]) rig.net.cut(A, other)
  rig.placement = []
  await rig.start(A, store, 2).replicas.fence(key)
  rig.placement = [A]
  rig.roll(A, key, 2, 0)
  await rig.until('it has ended', () => rig.segments().length === 2)
  assert.equal((await rig.produce(A, 'another')).offset, 2)
  for (const id of [B, C]) {
    assert.equal(rig.entriesAt(id, 1), 4)
    assert.equal(await rig.read(id), 'NOT_REPLICA')
  }
  rig.net.heal()
  for (const id of [B, C]) {
    await rig.until('the copy is made anew', () => rig.entriesAt(id, 1) === 2)
    await rig.until('it is read', async () => (await rig.read(id)).length === 2)
  }
})

test('nothing is said of a segment that is not here', async () => {
  await using rig = await Rig.make()
  const nowhere = { ...rig.key, segment: 7 }
  await assert.rejects(rig.node(B).replicas.fence(nowhere), EastGuardError)
  await assert.rejects(rig.node(B).replicas.inspect(nowhere), EastGuardError)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command, ResultOf } from '../../../src/core/metadata/commands.ts'
import { activeRange, rangeByNumber, segmentAt } from '../../../src/core/metadata/lookup.ts'
import { apply, emptyState } from '../../../src/core/metadata/machine.ts'
import type { MetadataState, Range, Topic } from '../../../src/core/metadata/types.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import { createTopic, given, node, placement, policy, topic } from './support.ts'

function run<C extends Command>(state: MetadataState, command: C): ResultOf<C['kind']> {
  return apply(state, command, state.appliedIndex + 1).result as ResultOf<C['kind']>
}

function refused(result: { readonly ok: boolean }, code: string): void {
  assert.equal(result.ok ? 'ok' : (result as { code?: string }).code, code)
}

function withTopic(partitions: number = 8): MetadataState {
  const state = emptyState()
  assert.ok(run(state, createTopic({ policy: policy({ partitions }) })).ok)
  return state
}

function only(state: MetadataState): Topic {
  const [first] = state.topics.values()
  assert.ok(first)
  return first
}

function rangeOf(state: MetadataState, number: number): Range {
  const range = rangeByNumber(only(state), number)
  assert.ok(range)
  return range
}

function roll(state: MetadataState, range: number, entries: number, token: string = 'next') {
  const end = given(rangeOf(state, range), entries)
  return run(state, {
    kind: 'RollSegment',
    topicId: topic(1),
    ...end,
    tailFrom: entries,
    placement: placement(token),
    timeMs: 5,
  })
}

function split(state: MetadataState, range: number, at: number, entries: number = 3) {
  const { nextRange } = only(state)
  return run(state, {
    kind: 'SplitRange',
    topicId: topic(1),
    ...given(rangeOf(state, range), entries),
    atPartition: at,
    left: { range: nextRange, ...placement('left') },
    right: { range: nextRange + 1, ...placement('right') },
    timeMs: 6,
  })
}

test('a topic in mode auto begins with one range over all partitions, segment 1 open', () => {
  const topic = only(withTopic())
  const [range] = topic.ranges
  assert.deepEqual([range?.firstPartition, range?.endPartition], [0, 8])
  assert.equal(range?.segments[0]?.segment, 1)
  assert.equal(range?.segments[0]?.state, 'open')
})

test('a topic with fixed ranges begins with contiguous tiles of even width', () => {
  const state = emptyState()
  const fixed = policy({ partitions: 10, rangeMode: 'fixed', ranges: 4 })
  assert.ok(run(state, createTopic({ policy: fixed })).ok)
  const tiles = only(state).active.map((r) => [r.firstPartition, r.endPartition])
  assert.deepEqual(tiles, [
    [0, 3],
    [3, 6],
    [6, 8],
    [8, 10],
  ])
})

test('an existing name is refused with its policy, and accepted when asked for with an equal one', () => {
  const state = withTopic()
  const again = createTopic({ topicId: topic(2) })
  const refusal = run(state, again)
  refused(refusal, 'TOPIC_EXISTS')
  assert.deepEqual(!refusal.ok && refusal.detail['policy'], policy({ partitions: 8 }))
  const equal = run(state, { ...again, ifNotExists: true })
  assert.ok(equal.ok && equal.answer.outcome === 'existing')
  assert.equal(equal.answer.topic.topicId, topic(1))
  const other = run(state, { ...again, ifNotExists: true, policy: policy() })
  refused(other, 'TOPIC_EXISTS')
  const asked = policy().partitions
  assert.ok(
    !other.ok && other.message.endsWith(`with another policy: partitions is 8, not ${asked}`),
  )
})

test('a retried creation with its token gets the first result, whatever the second proposed', () => {
  const state = emptyState()
  run(state, createTopic({ creationToken: 'mine' }))
  const retry = run(state, createTopic({ creationToken: 'mine', topicId: topic(2) }))
  assert.ok(retry.ok && retry.answer.outcome === 'created')
  assert.equal(retry.answer.topic.topicId, topic(1))
  refused(run(state, createTopic({ creationToken: 'yours' })), 'TOPIC_EXISTS')
})

test('bad names, policies and placements are refused and leave nothing behind', () => {
  const state = emptyState()
  refused(run(state, createTopic({ name: 'a b' })), 'INVALID_TOPIC_NAME')
  refused(run(state, createTopic({ policy: policy({ partitions: 0 }) })), 'INVALID_POLICY')
  refused(run(state, createTopic({ placement: [] })), 'INTERNAL')
  refused(run(state, createTopic({ placement: [placement('', [])] })), 'INTERNAL')
  const two = policy({ replicationFactor: 3, minInsyncReplicas: 2 })
  refused(run(state, createTopic({ policy: two })), 'NOT_ENOUGH_REPLICAS')
  assert.equal(state.topics.size, 0)
})

test('system topics are made by the system alone, and refuse deletion, more partitions and trimming', () => {
  const state = emptyState()
  const name = '__eastguard_offsets'
  refused(run(state, createTopic({ name })), 'TOPIC_PROTECTED')
  assert.ok(run(state, createTopic({ name, system: true })).ok)
  const topicId = topic(1)
  refused(run(state, { kind: 'DeleteTopic', topicId }), 'TOPIC_PROTECTED')
  const more = { kind: 'AddPartitions', topicId, partitions: 99, placement: placement() } as const
  refused(run(state, { ...more, timeMs: 0 }), 'TOPIC_PROTECTED')
  const starts = [{ partition: 0, offset: 5 }]
  refused(run(state, { kind: 'SetLogStart', topicId, starts }), 'TOPIC_PROTECTED')
})

test('a deleted topic is gone by name and id, and its name can be used again', () => {
  const state = withTopic()
  assert.ok(run(state, { kind: 'DeleteTopic', topicId: topic(1) }).ok)
  refused(run(state, { kind: 'DeleteTopic', topicId: topic(1) }), 'UNKNOWN_TOPIC')
  assert.equal(state.topicsByName.size, 0)
  assert.ok(run(state, createTopic({ topicId: topic(2) })).ok)
})

test('altering changes what it names and checks the whole; the shape stays', () => {
  const state = withTopic()
  const alter = { kind: 'AlterTopic', topicId: topic(1) } as const
  assert.ok(run(state, { ...alter, changes: { retentionMs: 5000 } }).ok)
  assert.equal(only(state).policy.retentionMs, 5000)
  assert.equal(only(state).version, 2)
  refused(run(state, { ...alter, changes: { minInsyncReplicas: 2 } }), 'INVALID_POLICY')
  run(state, { ...alter, changes: { partitions: 3 } as object })
  assert.equal(only(state).policy.partitions, 8)
})

test('added partitions form a range of their own; the old range is untouched', () => {
  const state = withTopic()
  const before = rangeOf(state, 0)
  const add = {
    kind: 'AddPartitions',
    topicId: topic(1),
    placement: placement(),
    timeMs: 7,
  } as const
  assert.ok(run(state, { ...add, partitions: 12 }).ok)
  assert.equal(rangeOf(state, 0), before)
  const added = activeRange(only(state), 11)
  assert.deepEqual([added?.firstPartition, added?.endPartition], [8, 12])
  assert.equal(only(state).logStartOffsets.length, 12)
  assert.ok(run(state, { ...add, partitions: 12 }).ok, 'a retry is a success')
  refused(run(state, { ...add, partitions: 11 }), 'INVALID_POLICY')
})

test('a roll seals at the end, opens the successor, and its retry gets the first result', () => {
  const state = withTopic()
  const end = given(rangeOf(state, 0), 4)
  const command = {
    kind: 'RollSegment',
    topicId: topic(1),
    ...end,
    tailFrom: 4,
    placement: placement('first'),
    timeMs: 5,
  } as const
  const first = run(state, command)
  assert.ok(first.ok)
  assert.deepEqual([first.answer.segment, first.answer.token], [2, 'first'])
  const [sealed, open] = rangeOf(state, 0).segments
  assert.deepEqual([sealed?.state, sealed?.endEntry, open?.state], ['sealed', 4, 'open'])
  const retry = run(state, { ...command, endEntry: 9, placement: placement('second') })
  assert.ok(retry.ok)
  assert.deepEqual([retry.answer.token, retry.answer.endEntry], ['first', 4])
  refused(run(state, { ...command, attempt: 1 }), 'METADATA_CONFLICT')
})

test('a cancelled end never commits', () => {
  const state = withTopic()
  const end = given(rangeOf(state, 0), 4)
  const cancel = { kind: 'CancelEnd', topicId: topic(1), range: 0, segment: 1, attempt: 0 } as const
  const cancelled = run(state, cancel)
  assert.ok(cancelled.ok && cancelled.answer.attempt === 1)
  const late = {
    kind: 'RollSegment',
    topicId: topic(1),
    tailFrom: 4,
    placement: placement(),
    timeMs: 5,
  } as const
  refused(run(state, { ...late, ...end }), 'METADATA_CONFLICT')
  const retry = run(state, cancel)
  assert.ok(retry.ok && retry.answer.attempt === 1, 'cancelling twice cancels once')
  assert.ok(run(state, { ...late, ...end, attempt: 1 }).ok)
  refused(run(state, { ...cancel, attempt: 1 }), 'METADATA_CONFLICT')
})

test('an end of zero entries is an end; one whose offsets do not follow from it is none', () => {
  const state = withTopic()
  const end = given(rangeOf(state, 0), 0)
  const command = {
    kind: 'RollSegment',
    topicId: topic(1),
    tailFrom: 0,
    placement: placement(),
    timeMs: 5,
  } as const
  refused(run(state, { ...command, ...end, endEntry: 1 }), 'INTERNAL')
  refused(run(state, { ...command, ...end, nextOffsets: [1] }), 'INTERNAL')
  assert.ok(run(state, { ...command, ...end }).ok)
})

test('a split hands offsets and numbers on to both children, and its retry finds them', () => {
  const state = withTopic()
  roll(state, 0, 5)
  const end = given(rangeOf(state, 0), 3)
  assert.ok(split(state, 0, 3).ok)
  const parent = rangeOf(state, 0)
  assert.deepEqual([parent.state, parent.children], ['sealed', [1, 2]])
  const right = rangeOf(state, 2)
  assert.deepEqual([right.firstPartition, right.endPartition, right.parents], [3, 8, [0]])
  assert.deepEqual(right.segments[0]?.firstOffsets, [8, 8, 8, 8, 8])
  assert.equal(right.segments[0]?.segment, 3)
  const retry = run(state, {
    kind: 'SplitRange',
    topicId: topic(1),
    ...end,
    atPartition: 4,
    left: { range: 3, ...placement() },
    right: { range: 4, ...placement() },
    timeMs: 6,
  })
  assert.ok(retry.ok && retry.answer.left === 1 && retry.answer.right === 2)
})

test('a range with one partition, or of a topic with fixed ranges, cannot be split', () => {
  const one = withTopic(1)
  refused(split(one, 0, 0), 'RANGE_FIXED')
  refused(split(one, 0, 1), 'RANGE_FIXED')
  const fixed = emptyState()
  run(fixed, createTopic({ policy: policy({ rangeMode: 'fixed' }) }))
  refused(split(fixed, 0, 4), 'RANGE_FIXED')
})

test('a merge joins neighbours under the greatest number; failing for one parent frees both', () => {
  const state = withTopic()
  split(state, 0, 4)
  roll(state, 2, 1)
  const [left, right] = [given(rangeOf(state, 1), 2), given(rangeOf(state, 2), 2)]
  const merge = { kind: 'MergeRange', topicId: topic(1), timeMs: 9 } as const
  const child = { range: 3, ...placement() }
  refused(
    run(state, { ...merge, left, right: { ...right, attempt: 7 }, child }),
    'METADATA_CONFLICT',
  )
  refused(run(state, { ...merge, left, right, child }), 'METADATA_CONFLICT')
  const now = { left: { ...left, attempt: 1 }, right: { ...right, attempt: 1 } }
  const merged = run(state, { ...merge, ...now, child })
  assert.ok(merged.ok && merged.answer.child === 3)
  assert.equal(rangeOf(state, 3).segments[0]?.segment, 4)
  assert.deepEqual(rangeOf(state, 3).segments[0]?.firstOffsets, [5, 5, 5, 5, 6, 6, 6, 6])
  const retry = run(state, { ...merge, ...now, child: { ...child, range: 4 } })
  assert.ok(retry.ok && retry.answer.child === 3)
})

test('retention drops sealed segments oldest first along the lineage and raises log starts', () => {
  const state = withTopic()
  roll(state, 0, 5)
  split(state, 0, 4)
  roll(state, 1, 2)
  const drop = { kind: 'DropSegments', topicId: topic(1) } as const
  refused(run(state, { ...drop, range: 1, belowSegment: 4 }), 'METADATA_CONFLICT')
  const first = run(state, { ...drop, range: 0, belowSegment: 2 })
  assert.deepEqual(first.ok && first.answer.dropped, [1])
  assert.deepEqual(only(state).logStartOffsets, Array(8).fill(5))
  const rest = run(state, { ...drop, range: 0, belowSegment: 99 })
  assert.deepEqual(rest.ok && rest.answer.dropped, [2])
  assert.equal(rangeByNumber(only(state), 0), undefined)
  assert.deepEqual(only(state).logStartOffsets, Array(8).fill(8))
  assert.equal(segmentAt(only(state), 0, 7), undefined)
  const again = run(state, { ...drop, range: 0, belowSegment: 99 })
  assert.deepEqual(again.ok && again.answer.dropped, [])
  const open = run(state, { ...drop, range: 1, belowSegment: 99 })
  assert.deepEqual(open.ok && open.answer.dropped, [3], 'the open one stays')
})

test('log starts only rise', () => {
  const state = withTopic()
  const set = (offset: number): void => {
    run(state, { kind: 'SetLogStart', topicId: topic(1), starts: [{ partition: 2, offset }] })
  }
  set(9)
  set(4)
  assert.equal(only(state).logStartOffsets[2], 9)
  const starts = [{ partition: 8, offset: 1 }]
  refused(run(state, { kind: 'SetLogStart', topicId: topic(1), starts }), 'UNKNOWN_PARTITION')
})

test('a sealed segment gains a replica before it loses one, and never the last', () => {
  const state = withTopic()
  roll(state, 0, 1)
  const at = { kind: 'ReassignSegment', topicId: topic(1), range: 0, segment: 1, seen: [] } as const
  const settle = { kind: 'SettleSegment', topicId: topic(1), range: 0, segment: 1 } as const
  assert.ok(run(state, { ...settle, digest: 'whole' }).ok)
  refused(run(state, { ...at, change: 'drop', replica: node(1) }), 'METADATA_CONFLICT')
  assert.ok(run(state, { ...at, change: 'add', replica: node(2) }).ok)
  const dropped = run(state, { ...at, change: 'drop', replica: node(1) })
  assert.deepEqual(dropped.ok && dropped.answer.replicas, [node(2)])
  const open = { ...at, segment: 2, change: 'add', replica: node(2) } as const
  refused(run(state, open), 'METADATA_CONFLICT')
})

test('of two changes of one segment that were each right for its replicas only the first takes effect', () => {
  const state = withTopic()
  roll(state, 0, 1)
  const segment = { topicId: topic(1), range: 0, segment: 1 } as const
  const replicas = (): readonly NodeId[] => rangeOf(state, 0).segments[0]?.replicas ?? []
  const change = (change: 'add' | 'drop', replica: NodeId, seen: readonly NodeId[]) =>
    run(state, { kind: 'ReassignSegment', ...segment, change, replica, seen })
  assert.ok(run(state, { kind: 'SettleSegment', ...segment, digest: 'whole' }).ok)
  assert.ok(change('add', node(2), [node(1)]).ok)
  refused(change('add', node(3), [node(1)]), 'METADATA_CONFLICT')
  assert.ok(change('add', node(3), [node(1), node(2)]).ok)
  const seen = [node(1), node(2), node(3)]
  assert.ok(change('drop', node(3), seen).ok)
  refused(change('drop', node(2), seen), 'METADATA_CONFLICT')
  assert.deepEqual(replicas(), [node(1), node(2)])
  assert.ok(change('drop', node(3), seen).ok, 'asked again')
})

test('producer ids are given out once, in blocks', () => {
  const state = emptyState()
  const first = run(state, { kind: 'AllocateProducerIds', count: 100 })
  const second = run(state, { kind: 'AllocateProducerIds', count: 1 })
  assert.deepEqual(first.ok && first.answer, { first: 1, count: 100 })
  assert.deepEqual(second.ok && second.answer, { first: 101, count: 1 })
  refused(run(state, { kind: 'AllocateProducerIds', count: 0 }), 'INTERNAL')
})

test('apply names the topics that changed, and only those', () => {
  const state = withTopic()
  const end = given(rangeOf(state, 0), 1)
  const command = {
    kind: 'RollSegment',
    topicId: topic(1),
    ...end,
    tailFrom: 1,
    placement: placement(),
    timeMs: 5,
  } as const
  assert.deepEqual(apply(state, command, 10).changed, [topic(1)])
  assert.deepEqual(apply(state, command, 11).changed, [], 'a retry changes nothing')
})

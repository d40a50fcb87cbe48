// Makes metadata commands for tests: ones that fit the state, and ones that are late, doubled or wrong.

import { type Prng, prng } from '../../../src/base/prng.ts'
import type {
  Command,
  CreateTopic,
  GivenEnd,
  PolicyChanges,
} from '../../../src/core/metadata/commands.ts'
import { apply } from '../../../src/core/metadata/machine.ts'
import { lastSegment } from '../../../src/core/metadata/topic.ts'
import type {
  MetadataState,
  MetadataView,
  Placement,
  Range,
  Segment,
  Topic,
} from '../../../src/core/metadata/types.ts'
import { type NodeId, nodeId, type TopicId, topicId } from '../../../src/model/ids.ts'
import { POLICY_DEFAULTS, type TopicPolicy } from '../../../src/model/policy.ts'

const NODES: readonly NodeId[] = [1, 2, 3, 4].map(node)

export function node(number: number): NodeId {
  return nodeId(String(number).padStart(32, '0'))
}
export function topic(number: number): TopicId {
  return topicId(number.toString(16).padStart(32, 'a'))
}

export function policy(changes: Partial<TopicPolicy> = {}): TopicPolicy {
  return { ...POLICY_DEFAULTS, replicationFactor: 1, minInsyncReplicas: 1, ...changes }
}

export function placement(token: string = 't', replicas: readonly NodeId[] = [node(1)]): Placement {
  return { replicas, token, stateDigest: token === '' ? '' : `digest-${token}` }
}

export function createTopic(changes: Partial<CreateTopic> = {}): CreateTopic {
  const chosen = changes.policy ?? policy({ partitions: 8 })
  return {
    kind: 'CreateTopic',
    name: 'events',
    topicId: topic(1),
    policy: chosen,
    placement: Array.from({ length: chosen.ranges }, () => placement('')),
    creationToken: '',
    ifNotExists: false,
    system: false,
    timeMs: 1000,
    ...changes,
  }
}

/** An end for a range's open segment: so many entries, all offsets moved by as much. */
export function given(range: Range, entries: number): GivenEnd {
  const open = lastSegment(range)
  return {
    range: range.range,
    segment: open.segment,
    attempt: open.attempt,
    endEntry: entries,
    nextOffsets: open.firstOffsets.map((offset) => offset + entries),
  }
}

/** Applies commands made of the seed, calling `check` after each. */
export function randomRun(
  state: MetadataState,
  seed: number,
  steps: number,
  check: (command: Command, index: number) => void,
): void {
  const chance = prng(seed)
  const past: Command[] = []
  for (let index = state.appliedIndex + 1; index <= steps; index++) {
    const repeat = past.length > 0 && chance.below(6) === 0
    const command = repeat
      ? (past[chance.below(past.length)] as Command)
      : randomCommand(state, chance)
    apply(state, command, index)
    past.push(command)
    check(command, index)
  }
}

export function randomCommand(state: MetadataView, chance: Prng): Command {
  const topics = [...state.topics.values()]
  const one = topics[chance.below(topics.length + 1)]
  if (one === undefined) return randomCreate(chance)
  const topicId = chance.below(20) === 0 ? topic(99) : one.topicId
  const range = pick(chance, one.active) as Range
  const segments = range.segments
  const timeMs = chance.below(1e9)
  switch (chance.below(19)) {
    case 0:
      return chance.below(4) === 0 ? { kind: 'DeleteTopic', topicId } : alter(topicId, chance)
    case 1:
      return {
        kind: 'AddPartitions',
        topicId,
        partitions: one.policy.partitions + chance.below(5) - 1,
        placement: randomPlacement(chance),
        timeMs,
      }
    case 2:
      return { kind: 'AllocateProducerIds', count: chance.below(2000) }
    case 3:
    case 4:
      return randomSplit(one, topicId, range, chance)
    case 5:
    case 6:
      return randomMerge(one, topicId, chance)
    case 7: {
      const { range: number, segment, attempt } = randomEnd(range, chance)
      return { kind: 'CancelEnd', topicId, range: number, segment, attempt }
    }
    case 8:
      return {
        kind: 'ReassignSegment',
        topicId,
        range: range.range,
        segment: (pick(chance, segments)?.segment ?? 0) + chance.below(2),
        change: chance.below(2) === 0 ? 'add' : 'drop',
        replica: pick(chance, NODES) as NodeId,
        seen: pick(chance, segments)?.replicas ?? [],
      }
    case 9:
    case 10: {
      const any = pick(chance, one.ranges) as Range
      const belowSegment = (pick(chance, any.segments)?.segment ?? 0) + chance.below(3)
      return { kind: 'DropSegments', topicId, range: any.range, belowSegment }
    }
    case 11: {
      const partition = chance.below(one.policy.partitions + 1)
      return {
        kind: 'SetLogStart',
        topicId,
        starts: [{ partition, offset: chance.below(100) }],
      }
    }
    case 12:
    case 13: {
      const { segment } = pick(chance, segments) as Segment
      const digest = pick(chance, ['', 'one', 'one', 'one', 'other']) as string
      return { kind: 'SettleSegment', topicId, range: range.range, segment, digest }
    }
    default: {
      const end = randomEnd(range, chance)
      return {
        kind: 'RollSegment',
        topicId,
        ...end,
        tailFrom: Math.max(0, end.endEntry + 1 - chance.below(4)),
        placement: randomPlacement(chance),
        timeMs,
      }
    }
  }
}

function randomCreate(chance: Prng): CreateTopic {
  const partitions = 1 + chance.below(12)
  const rangeMode = chance.below(3) === 0 ? 'fixed' : 'auto'
  const ranges = rangeMode === 'fixed' ? 1 + chance.below(partitions) : 1
  const number = 1 + chance.below(5)
  return createTopic({
    name: `topic-${number}`,
    topicId: topic(chance.below(1e9)),
    policy: policy({ partitions, rangeMode, ranges }),
    creationToken: chance.below(2) === 0 ? '' : `token-${chance.below(5)}`,
    ifNotExists: chance.below(2) === 0,
  })
}

function alter(topicId: TopicId, chance: Prng): Command {
  const changes: PolicyChanges[] = [
    { retentionMs: 1000 + chance.below(9) },
    { tier: 'critical' },
    { minInsyncReplicas: 1 + chance.below(3), replicationFactor: 2 },
  ]
  return { kind: 'AlterTopic', topicId, changes: pick(chance, changes) as PolicyChanges }
}

/** Mostly the end of the open segment, sometimes of another, or with offsets that cannot be. */
function randomEnd(range: Range, chance: Prng): GivenEnd {
  const open = lastSegment(range)
  const entries = chance.below(4)
  const end = given(range, entries)
  switch (chance.below(10)) {
    case 0:
      return { ...end, attempt: Math.max(0, open.attempt + 1 - chance.below(3)) }
    case 1:
      return { ...end, segment: open.segment - 1 + chance.below(3) }
    case 2:
      return { ...end, nextOffsets: end.nextOffsets.slice(1) }
    case 3:
      return {
        ...end,
        nextOffsets: end.nextOffsets.map((offset) => Math.max(0, offset - 1 - entries)),
      }
    default:
      return end
  }
}

function randomSplit(one: Topic, topicId: TopicId, range: Range, chance: Prng): Command {
  const next = one.nextRange + (chance.below(8) === 0 ? 1 : 0)
  return {
    kind: 'SplitRange',
    topicId,
    ...randomEnd(range, chance),
    atPartition: range.firstPartition + chance.below(range.endPartition - range.firstPartition + 1),
    left: { range: next, ...randomPlacement(chance) },
    right: { range: next + 1, ...randomPlacement(chance) },
    timeMs: chance.below(1e9),
  }
}

function randomMerge(one: Topic, topicId: TopicId, chance: Prng): Command {
  const at = chance.below(one.active.length)
  const left = one.active[at] as Range
  const right = one.active[at + 1] ?? (one.active[0] as Range)
  return {
    kind: 'MergeRange',
    topicId,
    left: randomEnd(left, chance),
    right: randomEnd(right, chance),
    child: { range: one.nextRange, ...randomPlacement(chance) },
    timeMs: chance.below(1e9),
  }
}

function randomPlacement(chance: Prng): Placement {
  const replicas = NODES.slice(0, chance.below(8) === 0 ? 0 : 1 + chance.below(3))
  return placement(`token-${chance.u32()}`, replicas)
}

function pick<T>(chance: Prng, from: readonly T[]): T | undefined {
  return from[chance.below(from.length)]
}

// The metadata machine: what the log of commands folds to. `apply` is a pure function of the state (which it changes in
// place) and the command: no clock, no chance. A command whose conditions do not hold changes nothing and is answered
// with a refusal; every replica of the log answers the same. This file owns the state and the switch; each family of
// commands is a sibling of leaf functions that turn one topic into the next.

import { assert, unreachable } from '../../base/assert.ts'
import type { TopicId } from '../../model/ids.ts'
import { addNode, FIRST_NODE_NUMBER, foundCluster, setNodeRole } from './cluster.ts'
import type { AllocateProducerIds, Command, Result } from './commands.ts'
import { mergeRange, splitRange } from './ranges.ts'
import { dropSegments, setLogStart } from './retention.ts'
import { cancelEnd, reassignSegment, rollSegment, settleSegment } from './segments.ts'
import { refuse } from './topic.ts'
import { addPartitions, alterTopic, createTopic, deleteTopic } from './topics.ts'
import type { MetadataState, Topic } from './types.ts'

/** Ids of one block at most: enough for any broker, and 2^53 lasts for nine billion of them. */
const PRODUCER_IDS_MAX = 1_000_000
/** 0 is what an unset field looks like, so it is nobody's id. */
const FIRST_PRODUCER_ID = 1

export interface Applied {
  readonly result: Result
  /** For whoever watches: topics that are other than before, or gone. */
  readonly changed: readonly TopicId[]
}

/** What a leaf function answers: the result and, when something changed, the topic as it is now. */
export interface Step<R extends Result = Result> {
  readonly result: R
  readonly topic?: Topic
  readonly deleted?: TopicId
}

const NOTHING: readonly TopicId[] = []

export function emptyState(): MetadataState {
  return {
    topics: new Map(),
    topicsByName: new Map(),
    nextProducerId: FIRST_PRODUCER_ID,
    cluster: undefined,
    nodes: new Map(),
    nextNodeNumber: FIRST_NODE_NUMBER,
    appliedIndex: 0,
  }
}

export function apply(state: MetadataState, command: Command, index: number): Applied {
  assert(index > state.appliedIndex, `command ${index} comes after ${state.appliedIndex}`)
  state.appliedIndex = index
  const step = stepOf(state, command)
  if (step.deleted !== undefined) return forget(state, step.result, step.deleted)
  if (step.topic === undefined) return { result: step.result, changed: NOTHING }
  putTopic(state, step.topic)
  return { result: step.result, changed: [step.topic.topicId] }
}

export function putTopic(state: MetadataState, topic: Topic): void {
  state.topics.set(topic.topicId, topic)
  state.topicsByName.set(topic.name, topic)
}

function forget(state: MetadataState, result: Result, topicId: TopicId): Applied {
  const topic = state.topics.get(topicId)
  assert(topic !== undefined, 'a topic that is deleted exists')
  state.topics.delete(topicId)
  state.topicsByName.delete(topic.name)
  return { result, changed: [topicId] }
}

function stepOf(state: MetadataState, command: Command): Step {
  if (command.kind === 'CreateTopic') return createTopic(state, command)
  if (command.kind === 'AllocateProducerIds') return { result: allocate(state, command) }
  if (command.kind === 'FoundCluster') return { result: foundCluster(state, command) }
  if (command.kind === 'AddNode') return { result: addNode(state, command) }
  if (command.kind === 'SetNodeRole') return { result: setNodeRole(state, command) }
  const topic = state.topics.get(command.topicId)
  if (topic === undefined) {
    const { topicId } = command
    return { result: refuse('UNKNOWN_TOPIC', `there is no topic with id ${topicId}`, { topicId }) }
  }
  switch (command.kind) {
    case 'DeleteTopic':
      return deleteTopic(topic)
    case 'AlterTopic':
      return alterTopic(topic, command)
    case 'AddPartitions':
      return addPartitions(topic, command)
    case 'RollSegment':
      return rollSegment(topic, command)
    case 'CancelEnd':
      return cancelEnd(topic, command)
    case 'SplitRange':
      return splitRange(topic, command)
    case 'MergeRange':
      return mergeRange(topic, command)
    case 'SettleSegment':
      return settleSegment(topic, command)
    case 'ReassignSegment':
      return reassignSegment(topic, command)
    case 'DropSegments':
      return dropSegments(topic, command)
    case 'SetLogStart':
      return setLogStart(topic, command)
    default:
      return unreachable(command)
  }
}

function allocate(state: MetadataState, command: AllocateProducerIds): Result {
  const { count } = command
  const first = state.nextProducerId
  if (!Number.isSafeInteger(count) || count < 1 || count > PRODUCER_IDS_MAX) {
    return refuse('INTERNAL', `${count} producer ids were asked for, 1 to ${PRODUCER_IDS_MAX} go`)
  }
  if (!Number.isSafeInteger(first + count)) return refuse('INTERNAL', 'producer ids are used up')
  state.nextProducerId = first + count
  return { ok: true, answer: { first, count } }
}

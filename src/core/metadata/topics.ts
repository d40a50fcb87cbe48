// Topics as wholes: create, delete, alter, add partitions.
//
// Partitions that are added form a range of their own behind the last one, with a first segment of its own. Widening
// the last range would need its leader to freeze and roll (its entries and state cover a fixed run of partitions),
// which can fail; a new range touches nothing that exists, and in mode auto a merge joins it later if load is low.

import { EastGuardError } from '../../base/errors.ts'
import { PARTITIONS_MAX, type TopicPolicy } from '../../model/policy.ts'
import { checkPolicy } from '../../model/policy-check.ts'
import { policyTexts } from '../../model/policy-keys.ts'
import { isSystemTopic, topicNameFault } from '../../model/topic-name.ts'
import type { AddPartitions, AlterTopic, CreateTopic, Refusal, ResultOf } from './commands.ts'
import { requireTiles } from './invariants.ts'
import type { Step } from './machine.ts'
import {
  activeOf,
  openRange,
  openSegment,
  placementFault,
  refuse,
  withRanges,
  zeros,
} from './topic.ts'
import type { MetadataView, Placement, Range, Topic } from './types.ts'

export function createTopic(
  state: MetadataView,
  command: CreateTopic,
): Step<ResultOf<'CreateTopic'>> {
  const existing = state.topicsByName.get(command.name)
  if (existing !== undefined) return { result: createExisting(existing, command) }
  const fault = createFault(state, command)
  if (fault !== undefined) return { result: fault }
  const ranges = firstRanges(command.policy, command.placement, command.timeMs)
  const topic: Topic = {
    name: command.name,
    topicId: command.topicId,
    policy: command.policy,
    createdAtMs: command.timeMs,
    version: 1,
    ranges,
    active: activeOf(ranges),
    nextRange: ranges.length,
    logStartOffsets: zeros(command.policy.partitions),
    creationToken: command.creationToken,
  }
  requireTiles(topic)
  return { result: { ok: true, answer: { topic, outcome: 'created' } }, topic }
}

function createExisting(topic: Topic, command: CreateTopic): ResultOf<'CreateTopic'> {
  if (command.creationToken !== '' && command.creationToken === topic.creationToken) {
    return { ok: true, answer: { topic, outcome: 'created' } }
  }
  if (command.ifNotExists && samePolicy(topic.policy, command.policy)) {
    return { ok: true, answer: { topic, outcome: 'existing' } }
  }
  const { name, topicId, policy } = topic
  const differ = command.ifNotExists
    ? ` with another policy: ${difference(policy, command.policy)}`
    : ''
  return refuse('TOPIC_EXISTS', `the topic '${name}' exists${differ}`, { name, topicId, policy })
}

function createFault(state: MetadataView, command: CreateTopic): Refusal | undefined {
  const { name, policy, placement } = command
  const nameFault = topicNameFault(name)
  if (nameFault !== undefined) return refuse('INVALID_TOPIC_NAME', nameFault, { name })
  if (isSystemTopic(name) && !command.system) {
    return refuse('TOPIC_PROTECTED', `names like '${name}' belong to the system`, { name })
  }
  if (state.topics.has(command.topicId)) {
    return refuse('INTERNAL', `the topic id ${command.topicId} is taken`)
  }
  const policyFault = faultOf(policy)
  if (policyFault !== undefined) return policyFault
  if (placement.length !== policy.ranges) {
    return refuse('INTERNAL', `${placement.length} placements for ${policy.ranges} ranges`)
  }
  for (const one of placement) {
    const fault = placementFault(one, policy)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Contiguous tiles that differ by one partition at most, the wider ones first. */
function firstRanges(
  policy: TopicPolicy,
  placement: readonly Placement[],
  timeMs: number,
): readonly Range[] {
  const width = Math.floor(policy.partitions / policy.ranges)
  const wider = policy.partitions % policy.ranges
  let at = 0
  return placement.map((one, range) => {
    const partitions = width + (range < wider ? 1 : 0)
    const first = at
    at += partitions
    return openRange(range, first, [], openSegment(1, zeros(partitions), one, timeMs))
  })
}

export function deleteTopic(topic: Topic): Step<ResultOf<'DeleteTopic'>> {
  const fault = protectedFault(topic, 'deleted')
  if (fault !== undefined) return { result: fault }
  return { result: { ok: true, answer: { topic } }, deleted: topic.topicId }
}

export function alterTopic(topic: Topic, command: AlterTopic): Step<ResultOf<'AlterTopic'>> {
  // The shape is not an AlterTopic's to change, whatever a decoder let through.
  const { partitions, rangeMode, ranges } = topic.policy
  const policy = { ...topic.policy, ...command.changes, partitions, rangeMode, ranges }
  const fault = faultOf(policy)
  if (fault !== undefined) return { result: fault }
  if (samePolicy(policy, topic.policy)) return { result: { ok: true, answer: { topic } } }
  const changed: Topic = { ...topic, version: topic.version + 1, policy }
  return { result: { ok: true, answer: { topic: changed } }, topic: changed }
}

export function addPartitions(
  topic: Topic,
  command: AddPartitions,
): Step<ResultOf<'AddPartitions'>> {
  const { partitions, rangeMode, ranges } = topic.policy
  const wanted = command.partitions
  if (wanted === partitions) return { result: { ok: true, answer: { topic } } }
  const fault = protectedFault(topic, 'given more partitions')
  if (fault !== undefined) return { result: fault }
  if (!Number.isSafeInteger(wanted) || wanted < partitions || wanted > PARTITIONS_MAX) {
    const message = `'${topic.name}' has ${partitions} partitions; it can have more, at most ${PARTITIONS_MAX}, but not ${wanted}`
    return { result: refuse('INVALID_POLICY', message, { partitions }) }
  }
  const placement = placementFault(command.placement, topic.policy)
  if (placement !== undefined) return { result: placement }
  const added = wanted - partitions
  const first = openSegment(1, zeros(added), command.placement, command.timeMs)
  const range = openRange(topic.nextRange, partitions, [], first)
  const policy: TopicPolicy = {
    ...topic.policy,
    partitions: wanted,
    ranges: rangeMode === 'fixed' ? ranges + 1 : ranges,
  }
  const changed: Topic = {
    ...withRanges(topic, [...topic.ranges, range]),
    policy,
    nextRange: topic.nextRange + 1,
    logStartOffsets: [...topic.logStartOffsets, ...zeros(added)],
  }
  requireTiles(changed)
  return { result: { ok: true, answer: { topic: changed } }, topic: changed }
}

/** Refuses what clients may not do to the system's own topics. */
export function protectedFault(topic: Topic, what: string): Refusal | undefined {
  if (!isSystemTopic(topic.name)) return undefined
  return refuse('TOPIC_PROTECTED', `the system topic '${topic.name}' cannot be ${what}`, {
    name: topic.name,
  })
}

function samePolicy(a: TopicPolicy, b: TopicPolicy): boolean {
  const keys = Object.keys(a) as (keyof TopicPolicy)[]
  return keys.every((key) => a[key] === b[key])
}

function faultOf(policy: TopicPolicy): Refusal | undefined {
  try {
    checkPolicy(policy)
    return undefined
  } catch (error) {
    if (error instanceof EastGuardError) return refuse(error.code, error.message, error.detail)
    throw error
  }
}

/** Only what differs, as people write it. */
function difference(present: TopicPolicy, asked: TopicPolicy): string {
  const wanted = policyTexts(asked)
  return policyTexts(present)
    .map(([name, text], i) => [name, text, wanted[i]?.[1]])
    .filter(([, text, other]) => text !== other)
    .map(([name, text, other]) => `${name} is ${text}, not ${other}`)
    .join(', ')
}

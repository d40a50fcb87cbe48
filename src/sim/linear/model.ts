// What one topic name may do, one operation at a time: the specification that histories are held against. It is
// written by hand and shares nothing with the metadata machine that it judges.
//
//   absent ──create──> present { id, token, policy } ──alter──> present { id, token, other policy }
//     ^                                  │
//     └────────────delete────────────────┘      an id that was left behind never comes back
//
// A creation of unknown outcome makes a topic whose id is not known: the first answer that names it says which it is.

import { unreachable } from '../../base/assert.ts'
import type { Facts, Operation, Outcome } from './types.ts'

interface Present {
  readonly topicId: string | undefined
  readonly token: string
  readonly policy: Facts
}

export interface State {
  readonly topic: Present | undefined
  /** Ids of topics of this name that were deleted. */
  readonly gone: Gone | undefined
}

interface Gone {
  readonly topicId: string
  readonly before: Gone | undefined
}

export const NOTHING_YET: State = { topic: undefined, gone: undefined }

/** The state after an operation that was answered so, the same object if nothing changes; undefined: it cannot be. */
export function answered(state: State, operation: Operation, outcome: Outcome): State | undefined {
  switch (operation.kind) {
    case 'create':
      return creation(state, operation, outcome)
    case 'alter':
      return alteration(state, operation.changes, outcome)
    case 'delete':
      if (outcome.kind === 'absent') return absent(state)
      return outcome.kind === 'deleted' && state.topic !== undefined ? without(state) : undefined
    case 'describe':
      if (outcome.kind === 'absent') return absent(state)
      return outcome.kind === 'described' ? seen(state, outcome) : undefined
    default:
      return unreachable(operation)
  }
}

/** The state after an operation whose answer nobody saw, the same object if nothing changes. */
export function unanswered(state: State, operation: Operation): State {
  const { topic } = state
  switch (operation.kind) {
    case 'create':
      return topic === undefined ? made(state, operation, undefined) : state
    case 'alter':
      return topic === undefined ? state : changed(state, topic, operation.changes)
    case 'delete':
      return topic === undefined ? state : without(state)
    case 'describe':
      return state
    default:
      return unreachable(operation)
  }
}

/** Whether an operation that was answered so leaves every state as it is. */
export function onlyLooks(outcome: Outcome): boolean {
  const { kind } = outcome
  return kind === 'described' || kind === 'absent' || kind === 'existing' || kind === 'taken'
}

/** Equal for states that no later answer can tell apart, given what came before them. */
export function stateKey(state: State, keys: readonly string[]): string {
  const { topic } = state
  if (topic === undefined) return '-'
  return `${topic.topicId ?? '?'}|${topic.token}|${keys.map((key) => topic.policy[key]).join('|')}`
}

type Creation = Extract<Operation, { kind: 'create' }>

function creation(state: State, operation: Creation, outcome: Outcome): State | undefined {
  const { topic } = state
  const again = topic !== undefined && operation.token !== '' && topic.token === operation.token
  const equal =
    topic !== undefined && operation.ifNotExists && agrees(topic.policy, operation.policy)
  if (outcome.kind === 'created') {
    if (topic !== undefined) return again ? seen(state, outcome) : undefined
    if (outcome.topicId !== undefined && isGone(state, outcome.topicId)) return undefined
    return seen(made(state, operation, outcome.topicId), outcome)
  }
  if (topic === undefined || again) return undefined
  if (outcome.kind === 'existing') return equal ? seen(state, outcome) : undefined
  return outcome.kind === 'taken' && !equal ? state : undefined
}

function alteration(state: State, changes: Facts, outcome: Outcome): State | undefined {
  const { topic } = state
  if (outcome.kind === 'absent') return absent(state)
  if (outcome.kind !== 'altered' || topic === undefined) return undefined
  return seen(changed(state, topic, changes), outcome)
}

function absent(state: State): State | undefined {
  return state.topic === undefined ? state : undefined
}

/** The state that an answer about a topic confirms, or says the id of. */
function seen(
  state: State,
  answer: { readonly topicId?: string; readonly policy?: Facts },
): State | undefined {
  const { topic } = state
  const { topicId, policy } = answer
  if (topic === undefined) return undefined
  if (policy !== undefined && !agrees(topic.policy, policy)) return undefined
  if (topicId === undefined || topicId === topic.topicId) return state
  if (topic.topicId !== undefined || isGone(state, topicId)) return undefined
  return { ...state, topic: { ...topic, topicId } }
}

function made(state: State, { token, policy }: Creation, topicId: string | undefined): State {
  return { ...state, topic: { topicId, token, policy } }
}

function changed(state: State, topic: Present, changes: Facts): State {
  const policy = { ...topic.policy, ...changes }
  return agrees(topic.policy, policy) ? state : { ...state, topic: { ...topic, policy } }
}

function without(state: State): State {
  const topicId = state.topic?.topicId
  const gone = topicId === undefined ? state.gone : { topicId, before: state.gone }
  return { topic: undefined, gone }
}

function isGone(state: State, topicId: string): boolean {
  for (let one = state.gone; one !== undefined; one = one.before) {
    if (one.topicId === topicId) return true
  }
  return false
}

/** What is known is what was answered. */
function agrees(known: Facts, said: Facts): boolean {
  return Object.keys(known).every((key) => known[key] === said[key])
}

// Histories for tests: made by the model one operation after another, then spread over time so that they overlap; and
// an exhaustive search for an order, the checker's own judge.

import fc from 'fast-check'
import { answered, NOTHING_YET, type State, unanswered } from '../../../src/sim/linear/model.ts'
import type { Attempt, Facts, History, Operation, Outcome } from '../../../src/sim/linear/types.ts'

export const NAME = 'orders'

/** Distance of the moments at which operations of a generated history take effect. */
const STEP_MS = 10

export interface Intent {
  readonly operation: Operation
  /** How long before its moment it is called and how long after it the answer comes. */
  readonly earlyMs: number
  readonly lateMs: number
  readonly fate: 'answered' | 'answer lost' | 'request lost'
}

const value = fc.integer({ min: 1, max: 3 })

const anyOperation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      policy: fc.record({ a: value, b: value }),
      token: fc.constantFrom('', '', 'x', 'y'),
      ifNotExists: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('alter' as const),
      changes: fc.oneof(
        value.map((a): Facts => ({ a })),
        value.map((b): Facts => ({ b })),
      ),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'delete' as const }) },
  { weight: 4, arbitrary: fc.constant({ kind: 'describe' as const }) },
)

/** What a workload does whose every change can be told from every other. */
export const distinctOperation: fc.Arbitrary<Operation> = fc
  .tuple(anyOperation, fc.integer({ min: 1000, max: 1_000_000_000 }))
  .map(([operation, unique]) => {
    if (operation.kind === 'create')
      return { ...operation, policy: { a: unique, b: 1 }, token: `${unique}` }
    return operation.kind === 'alter' ? { ...operation, changes: { a: unique } } : operation
  })

export function anyIntent(
  overlapMs: number,
  lostPerHundred: number,
  operation: fc.Arbitrary<Operation> = anyOperation,
): fc.Arbitrary<Intent> {
  return fc.record({
    operation,
    earlyMs: fc.integer({ min: 0, max: overlapMs }),
    lateMs: fc.integer({ min: 0, max: overlapMs }),
    fate: fc.oneof(
      { weight: 100 - lostPerHundred, arbitrary: fc.constant('answered' as const) },
      {
        weight: lostPerHundred,
        arbitrary: fc.constantFrom('answer lost' as const, 'request lost' as const),
      },
    ),
  })
}

/** The one answer that the model allows. */
export function answerIn(state: State, operation: Operation, freshId: string): Outcome {
  const allowed = answersOf(state, operation, freshId).filter(
    (outcome) => answered(state, operation, outcome) !== undefined,
  )
  const [only] = allowed
  if (only === undefined || allowed.length > 1) {
    throw new Error(`${allowed.length} answers to ${JSON.stringify(operation)}`)
  }
  return only
}

function answersOf(state: State, operation: Operation, freshId: string): Outcome[] {
  const { topic } = state
  const id = topic === undefined ? {} : { topicId: topic.topicId ?? freshId }
  if (operation.kind === 'create') {
    const created = { kind: 'created', topicId: freshId, ...id } as const
    return [created, { kind: 'existing', ...id }, { kind: 'taken' }]
  }
  if (operation.kind === 'delete') return [{ kind: 'deleted' }, { kind: 'absent' }]
  if (operation.kind === 'alter') {
    const policy = { ...topic?.policy, ...operation.changes }
    return [{ kind: 'altered', policy }, { kind: 'absent' }]
  }
  const { policy = {} } = topic ?? {}
  return [{ kind: 'described', topicId: freshId, ...id, policy }, { kind: 'absent' }]
}

export interface Played {
  readonly history: History
  /** What it leads to. */
  readonly state: State
}

export function historyOf(intents: readonly Intent[]): History {
  return play(intents).history
}

/** A history that has an order: each operation takes effect at its moment. */
export function play(intents: readonly Intent[]): Played {
  let state = NOTHING_YET
  const attempts: Omit<Attempt, 'process'>[] = []
  for (const [i, { operation, earlyMs, lateMs, fate }] of intents.entries()) {
    const atMs = (i + 1) * STEP_MS
    const common = { name: NAME, callMs: atMs - earlyMs, operation }
    if (fate !== 'answered') {
      if (fate === 'answer lost') state = unanswered(state, operation)
      attempts.push({ ...common, returnMs: undefined, outcome: { kind: 'unknown' } })
      continue
    }
    const outcome = answerIn(state, operation, `t${i}`)
    state = answered(state, operation, outcome) ?? state
    attempts.push({ ...common, returnMs: atMs + lateMs, outcome })
  }
  return { history: withProcesses(attempts), state }
}

/** Each goes to the first process that is free by then; one that was not answered makes way for a new process. */
export function withProcesses(attempts: readonly Omit<Attempt, 'process'>[]): History {
  const freeAtMs: number[] = []
  const byCall = [...attempts].sort((a, b) => a.callMs - b.callMs)
  return byCall.map((attempt) => {
    let at = freeAtMs.findIndex((freeMs) => freeMs < attempt.callMs)
    if (at < 0) at = freeAtMs.length
    freeAtMs[at] = attempt.returnMs ?? Infinity
    return { ...attempt, process: `p${at}` }
  })
}

/** Tries every order. Only for short histories, or for ones in which hardly anything overlaps. */
export function orderOf(history: History): readonly Attempt[] | undefined {
  const attempts = history.filter(({ outcome }) => outcome.kind !== 'refused')
  const go = (state: State, order: readonly Attempt[]): readonly Attempt[] | undefined => {
    const rest = attempts.filter((one) => !order.includes(one))
    if (rest.every(isOpen)) return order
    for (const one of rest) {
      if (rest.some((other) => comesBefore(other, one, attempts))) continue
      const { operation, outcome } = one
      const after = isOpen(one) ? unanswered(state, operation) : answered(state, operation, outcome)
      if (after === undefined) continue
      const found = go(after, [...order, one])
      if (found !== undefined) return found
    }
    return undefined
  }
  return go(NOTHING_YET, [])
}

function isOpen({ outcome, returnMs }: Attempt): boolean {
  return outcome.kind === 'unknown' || returnMs === undefined
}

function comesBefore(a: Attempt, b: Attempt, attempts: readonly Attempt[]): boolean {
  if (a === b || isOpen(a)) return false
  if ((a.returnMs ?? Infinity) < b.callMs) return true
  return a.process === b.process && attempts.indexOf(a) < attempts.indexOf(b)
}

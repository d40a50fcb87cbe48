// Whether a history of metadata operations is linearizable: each seems to have happened at one moment between its call
// and its return. Topics of different names are independent objects, and a history is linearizable exactly when its part
// on each object is (Herlihy & Wing 1990), so every name is judged by itself.

import { assert } from '../../base/assert.ts'
import { explain } from './explain.ts'
import { type Candidate, search } from './search.ts'
import type { Attempt, History, Operation } from './types.ts'
import { withoutUnseen } from './unseen.ts'

export type Linearizability =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly name: string
      /** Operations that have no order, as few as show it; or that none was found within the steps allowed. */
      readonly explanation: string
      /** Nothing was shown either way. */
      readonly undecided: boolean
    }

/** Per name. Of 2,720 tangled histories of 200 operations, 30 of them unanswered, two took more. */
const STEPS_MAX = 2_000_000

export function checkLinearizable(history: History, stepsMax: number = STEPS_MAX): Linearizability {
  for (const [name, attempts] of byName(history)) {
    const candidates = candidatesOf(attempts)
    const verdict = search(candidates, stepsMax)
    if (verdict.kind === 'ordered') continue
    if (verdict.kind === 'stuck') {
      const explanation = explain(name, attempts, candidates, verdict, stepsMax)
      return { ok: false, name, explanation, undecided: false }
    }
    const explanation = `'${name}': no order of its ${attempts.length} operations was found or ruled out in ${stepsMax} steps`
    return { ok: false, name, explanation, undecided: true }
  }
  return { ok: true }
}

/** Attempts that were refused took no effect and show nothing: they are left out. */
function byName(history: History): ReadonlyMap<string, readonly Attempt[]> {
  const names = new Map<string, Attempt[]>()
  for (const attempt of history) {
    if (attempt.outcome.kind === 'refused') continue
    const attempts = names.get(attempt.name)
    if (attempts === undefined) names.set(attempt.name, [attempt])
    else attempts.push(attempt)
  }
  return names
}

function candidatesOf(attempts: readonly Attempt[]): readonly Candidate[] {
  requireSameKeys(attempts)
  const tokens = new Map<string, number>()
  for (const { operation } of attempts) {
    if (operation.kind !== 'create') continue
    tokens.set(operation.token, (tokens.get(operation.token) ?? 0) + 1)
  }
  const operations = withoutUnseen(
    attempts.map(({ operation }) => withoutLoneToken(operation, tokens)),
    attempts,
  )
  const last = new Map<string, number>()
  return attempts.map(({ process, callMs, returnMs, outcome }, at) => {
    const open = outcome.kind === 'unknown' || returnMs === undefined
    const after = last.get(process)
    if (open) last.delete(process)
    else last.set(process, at)
    return {
      operation: operations[at] as Operation,
      outcome,
      callMs,
      returnMs,
      mode: open ? 'open' : 'fixed',
      after,
    }
  })
}

/** A token that is used once says nothing, and would make equal states look different. */
function withoutLoneToken(operation: Operation, tokens: ReadonlyMap<string, number>): Operation {
  if (operation.kind !== 'create' || tokens.get(operation.token) !== 1) return operation
  return { ...operation, token: '' }
}

/** Otherwise it is not known which policies are equal. */
function requireSameKeys(attempts: readonly Attempt[]): void {
  let first: readonly string[] | undefined
  for (const { operation } of attempts) {
    if (operation.kind !== 'create') continue
    const keys = Object.keys(operation.policy).sort()
    first ??= keys
    assert(keys.join() === first.join(), `every creation gives the keys ${first.join()}`)
  }
  for (const { operation } of attempts) {
    if (operation.kind !== 'alter' || first === undefined) continue
    for (const key of Object.keys(operation.changes)) {
      assert(first.includes(key), `${key} is altered, so every creation gives it`)
    }
  }
}

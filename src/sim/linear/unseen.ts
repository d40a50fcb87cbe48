// Values that no answer shows are made one. Whether a policy has a value matters only where an answer, or the condition
// of a creation, is compared with it; so operations that differ in values that are never compared do the same, and the search
// need not tell apart which of them took effect.

import type { Attempt, Facts, Operation } from './types.ts'

const UNSEEN = '(never answered)'

export function withoutUnseen(
  operations: readonly Operation[],
  attempts: readonly Attempt[],
): readonly Operation[] {
  const compared = new Map<string, Set<string | number>>()
  const note = (facts: Facts): void => {
    for (const [key, value] of Object.entries(facts)) {
      const values = compared.get(key)
      if (values === undefined) compared.set(key, new Set([value]))
      else values.add(value)
    }
  }
  for (const { operation, outcome } of attempts) {
    if ('policy' in outcome) note(outcome.policy)
    if (operation.kind === 'create' && operation.ifNotExists) note(operation.policy)
  }
  const seen = (facts: Facts): Facts =>
    Object.fromEntries(
      Object.entries(facts).map(([key, value]) =>
        compared.get(key)?.has(value) === true ? [key, value] : [key, UNSEEN],
      ),
    )
  return operations.map((operation) => {
    if (operation.kind === 'create') return { ...operation, policy: seen(operation.policy) }
    if (operation.kind === 'alter') return { ...operation, changes: seen(operation.changes) }
    return operation
  })
}

// Why a history has no order, in as few operations as show it. Leaving one out is no proof (a description of a topic
// has no order without its creation either), so operations are loosened instead: one that is loose may have taken effect
// between its call and its return, or not, and its answer counts for nothing. Whatever order the history had, it would
// have with looser operations too; so if those that stay firm have no order among loose ones, the history has none.
// Loosening more only ever allows more orders, so once through is enough: no firm one that is left can be loosened.

import { type Candidate, search, type Verdict } from './search.ts'
import type { Attempt, Facts, Operation, Outcome } from './types.ts'

type Stuck = Extract<Verdict, { kind: 'stuck' }>

export function explain(
  name: string,
  attempts: readonly Attempt[],
  candidates: readonly Candidate[],
  stuck: Stuck,
  stepsMax: number,
): string {
  const { loosened, last } = loosen(candidates, stuck, stepsMax)
  const firm = attempts
    .filter((_, at) => loosened[at]?.mode === 'fixed')
    .sort((a, b) => a.callMs - b.callMs)
  const others = attempts.length - firm.length
  const lines = [`'${name}': these operations have no order that explains their answers`]
  for (const attempt of firm) lines.push(`  ${attemptText(attempt)}`)
  if (others > 0) lines.push(`  whether or not the other ${others} took effect in their time`)
  const shown = last.at === stuck.at ? stuck : last
  const at = attempts[shown.at]
  if (at !== undefined)
    lines.push(
      `  ${statesText(shown)} before ${at.process} was answered at ${timeText(at.returnMs)} ms`,
    )
  return lines.join('\n')
}

/** By halves: few stay firm, and whole stretches of the others go at once. */
function loosen(
  candidates: readonly Candidate[],
  stuck: Stuck,
  stepsMax: number,
): { readonly loosened: readonly Candidate[]; readonly last: Stuck } {
  let loosened = candidates
  let last = stuck
  const tryOn = (from: number, to: number): void => {
    const looser = loosened.map((one, at) => (at >= from && at < to ? loose(one) : one))
    const verdict = search(looser, stepsMax)
    if (verdict.kind === 'stuck') {
      loosened = looser
      last = verdict
    } else if (to - from > 1) {
      const middle = Math.floor((from + to) / 2)
      tryOn(from, middle)
      tryOn(middle, to)
    }
  }
  if (candidates.length > 0) tryOn(0, candidates.length)
  return { loosened, last }
}

function loose(one: Candidate): Candidate {
  return one.mode === 'fixed' ? { ...one, mode: 'optional' } : one
}

function attemptText({ process, callMs, returnMs, operation, outcome }: Attempt): string {
  const time = `${timeText(callMs)}..${timeText(returnMs)} ms`
  return `${time}  ${process}  ${operationText(operation)} -> ${outcomeText(outcome)}`
}

/** To the microsecond. */
function timeText(ms: number | undefined): string {
  return ms === undefined ? '' : String(Math.round(ms * 1000) / 1000)
}

function operationText(operation: Operation): string {
  if (operation.kind === 'alter') return `alter ${factsText(operation.changes)}`
  if (operation.kind !== 'create') return operation.kind
  const { policy, token, ifNotExists } = operation
  const how = `${ifNotExists ? ' if not exists' : ''}${token === '' ? '' : ` token ${token}`}`
  return `create ${factsText(policy)}${how}`
}

function outcomeText(outcome: Outcome): string {
  const words: string[] = [outcome.kind]
  if ('topicId' in outcome) words.push(outcome.topicId)
  if ('policy' in outcome) words.push(factsText(outcome.policy))
  return words.join(' ')
}

function factsText(facts: Facts): string {
  return `{${Object.entries(facts)
    .map(([key, value]) => `${key}: ${value}`)
    .join(', ')}}`
}

function statesText({ states }: Stuck): string {
  const shown = new Set(
    states.map(({ topic }) =>
      topic === undefined ? 'absent' : `${topic.topicId ?? 'a topic'} ${factsText(topic.policy)}`,
    ),
  )
  const list = [...shown].slice(0, STATES_SHOWN)
  if (shown.size > list.length) list.push(`${shown.size - list.length} more`)
  return `the topic could be: ${list.join('; ')}`
}

const STATES_SHOWN = 5

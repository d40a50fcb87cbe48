// Looks for one order of a name's operations that explains every answer (after Wing & Gong 1993, with the just-in-time
// linearization and memory of Lowe, "Testing for linearizability", 2017). It walks through calls and returns by time and keeps
// every situation that the topic may be in:
//
//   situation = the state, and which of the operations that are under way have taken effect already
//
//   call    joins those under way          return    it has taken effect by now: situations in which it has not are
//                                                    led on through others that are under way until it does,
//                                                    and those from which nothing leads there are dropped
//
// No situation left: there is no order. What keeps their number small:
//   - an operation takes effect only when a return forces it, or an earlier one that must come before;
//   - one that only looks does so as soon as its answer is right, since that forecloses nothing;
//   - of operations without an answer that would do the same, the one called first goes first;
//   - a situation that has used more of those without an answer than another of the same state is no better, and dropped.

import { assert } from '../../base/assert.ts'
import { answered, NOTHING_YET, onlyLooks, type State, stateKey, unanswered } from './model.ts'
import type { Operation, Outcome } from './types.ts'

export interface Candidate {
  readonly operation: Operation
  readonly outcome: Outcome
  readonly callMs: number
  readonly returnMs: number | undefined
  /**
   * fixed: takes effect between call and return, with this outcome. optional: between them, or never. open: at any time
   * after the call, or never.
   */
  readonly mode: 'fixed' | 'optional' | 'open'
  /** Takes effect only after this one has. */
  readonly after: number | undefined
}

export type Verdict =
  | { readonly kind: 'ordered' }
  /** When the candidate `at` returned, nothing explained its answer; before, the topic could be in these states. */
  | { readonly kind: 'stuck'; readonly at: number; readonly states: readonly State[] }
  | { readonly kind: 'undecided' }

interface Situation {
  readonly state: State
  /** Under way, not open, and have taken effect. Ascending. */
  readonly done: readonly number[]
  /** Open, and have taken effect. Ascending. */
  readonly used: readonly number[]
}

export function search(candidates: readonly Candidate[], stepsMax: number): Verdict {
  return new Search(candidates, stepsMax).run()
}

class Search {
  private readonly candidates: readonly Candidate[]
  private readonly keys: readonly string[]
  private readonly underWay = new Set<number>()
  /** Open operations that were called, in that order, by what they would do. */
  private readonly open = new Map<string, number[]>()
  private situations = new Situations()
  private stepsLeft: number

  constructor(candidates: readonly Candidate[], stepsMax: number) {
    this.candidates = candidates
    this.stepsLeft = stepsMax
    const keys = new Set<string>()
    for (const { operation } of candidates) {
      if (operation.kind === 'create')
        for (const key of Object.keys(operation.policy)) keys.add(key)
    }
    this.keys = [...keys]
    this.situations.add({ state: NOTHING_YET, done: [], used: [] }, this.keys)
  }

  run(): Verdict {
    for (const { at, isReturn } of eventsOf(this.candidates)) {
      if (!isReturn) {
        this.call(at)
        continue
      }
      const next = this.return(at)
      if (this.stepsLeft <= 0) return { kind: 'undecided' }
      if (next.size === 0) return { kind: 'stuck', at, states: this.situations.states() }
      this.situations = next
    }
    return { kind: 'ordered' }
  }

  private call(at: number): void {
    const { mode, operation, outcome } = this.candidate(at)
    if (mode === 'open') {
      const effect = effectKey(operation)
      const same = this.open.get(effect)
      if (same === undefined) this.open.set(effect, [at])
      else same.push(at)
      return
    }
    this.underWay.add(at)
    if (mode !== 'fixed' || !onlyLooks(outcome)) return
    const next = new Situations()
    for (const situation of this.situations) next.add(this.looked(situation), this.keys)
    this.situations = next
  }

  private return(at: number): Situations {
    const next = new Situations()
    const later: Situation[] = []
    const optional = this.candidate(at).mode === 'optional'
    for (const situation of this.situations) {
      const done = situation.done.includes(at)
      if (done || optional) next.add(returned(situation, at), this.keys)
      if (!done) later.push(situation)
    }
    this.lead(later, at, next)
    this.underWay.delete(at)
    return next
  }

  /** Puts into `reached` every situation in which `target` has just taken effect. */
  private lead(from: readonly Situation[], target: number, reached: Situations): void {
    const known = new Situations()
    const waiting: Situation[] = []
    for (const one of from) if (known.add(one, this.keys)) waiting.push(one)
    // First in, first out: situations that have used little are met before those that have used more and are no better.
    for (let i = 0; i < waiting.length && this.stepsLeft > 0; i++) {
      for (const led of this.steps(waiting[i] as Situation)) {
        if (led.done.includes(target)) reached.add(returned(led, target), this.keys)
        else if (known.add(led, this.keys)) waiting.push(led)
      }
    }
  }

  /** What one operation that takes effect now makes of a situation. */
  private *steps(situation: Situation): Generator<Situation> {
    for (const at of this.underWay) {
      if (situation.done.includes(at) || !this.mayGo(situation, at)) continue
      const state = this.stateAfter(situation.state, at)
      if (state === undefined) continue
      yield this.looked({ ...situation, state, done: inserted(situation.done, at) })
    }
    for (const same of this.open.values()) {
      const at = same.find((one) => !situation.used.includes(one))
      if (at === undefined) continue
      const state = this.stateAfter(situation.state, at)
      if (state === undefined) continue
      yield this.looked({ ...situation, state, used: inserted(situation.used, at) })
    }
  }

  private stateAfter(state: State, at: number): State | undefined {
    this.stepsLeft--
    const { mode, operation, outcome } = this.candidate(at)
    if (mode === 'fixed') return answered(state, operation, outcome)
    const after = unanswered(state, operation)
    return after === state ? undefined : after
  }

  /** Those that only look and whose answer is right have done so. */
  private looked(situation: Situation): Situation {
    let { done } = situation
    for (let before = -1; before !== done.length; ) {
      before = done.length
      for (const at of this.underWay) {
        const { mode, operation, outcome } = this.candidate(at)
        if (mode !== 'fixed' || !onlyLooks(outcome) || done.includes(at)) continue
        if (!this.mayGo({ ...situation, done }, at)) continue
        this.stepsLeft--
        if (answered(situation.state, operation, outcome) === situation.state) {
          done = inserted(done, at)
        }
      }
    }
    return { ...situation, done }
  }

  private mayGo({ done }: Situation, at: number): boolean {
    const { after } = this.candidate(at)
    if (after === undefined || !this.underWay.has(after)) return true
    // One that may never take effect holds nothing up.
    return this.candidate(after).mode !== 'fixed' || done.includes(after)
  }

  private candidate(at: number): Candidate {
    const candidate = this.candidates[at]
    assert(candidate !== undefined, `${at} is one of ${this.candidates.length} candidates`)
    return candidate
  }
}

/** A set that keeps, of situations that differ only in open operations used, those that have used least. */
class Situations {
  private readonly known = new Map<string, Situation[]>()
  size = 0

  /** False when one that is as good is known. */
  add(situation: Situation, keys: readonly string[]): boolean {
    const key = `${situation.done.join()};${stateKey(situation.state, keys)}`
    const alike = this.known.get(key) ?? []
    if (alike.some(({ used }) => isPart(used, situation.used))) return false
    const kept = alike.filter(({ used }) => !isPart(situation.used, used))
    this.size += 1 + kept.length - alike.length
    kept.push(situation)
    this.known.set(key, kept)
    return true
  }

  *[Symbol.iterator](): Generator<Situation> {
    for (const alike of this.known.values()) yield* alike
  }

  states(): readonly State[] {
    return [...this].map(({ state }) => state)
  }
}

interface Event {
  readonly at: number
  readonly timeMs: number
  readonly isReturn: boolean
}

/** At equal times calls come first: the two may have overlapped. */
function eventsOf(candidates: readonly Candidate[]): readonly Event[] {
  const events: Event[] = []
  for (const [at, { callMs, returnMs, mode }] of candidates.entries()) {
    events.push({ at, timeMs: callMs, isReturn: false })
    if (mode === 'open') continue
    assert(returnMs !== undefined && returnMs >= callMs, 'an answer comes after the call')
    events.push({ at, timeMs: returnMs, isReturn: true })
  }
  return events.sort(
    (a, b) => a.timeMs - b.timeMs || Number(a.isReturn) - Number(b.isReturn) || a.at - b.at,
  )
}

function effectKey(operation: Operation): string {
  // A condition that only decides about the answer is no part of what is done.
  if (operation.kind === 'create') return JSON.stringify({ ...operation, ifNotExists: false })
  return JSON.stringify(operation)
}

function returned(situation: Situation, at: number): Situation {
  return { ...situation, done: situation.done.filter((one) => one !== at) }
}

function inserted(ascending: readonly number[], one: number): readonly number[] {
  return [...ascending, one].sort((a, b) => a - b)
}

/** Both ascending. */
function isPart(some: readonly number[], all: readonly number[]): boolean {
  let i = 0
  for (const one of all) if (one === some[i]) i++
  return i === some.length
}

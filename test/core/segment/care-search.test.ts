// Whatever is heard, in whatever order: what the coordinator proposes follows from what was said. The rules are written down here a
// second time, from the dialogue alone.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { CareEffect } from '../../../src/core/segment/care-types.ts'
import { SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import { CareScript, idOf } from './care-script.ts'

const BROKERS = ['A', 'B', 'C', 'D', 'E'] as const

type Step = {
  readonly kind: string
  readonly name: string
  readonly end: number
  readonly hw: number
}

const step = fc.record({
  kind: fc.constantFrom(
    'answer',
    'answer',
    'answer',
    'unsure',
    'give',
    'give',
    'fail',
    'stored',
    'stored',
    'not stored',
    'dies',
    'lives',
    'restarts',
    'unfit',
    'silent',
    'heard',
    'commits',
    'applied',
    'unknown',
    'refused',
    'drains',
    'another',
    'cancel',
    'passes',
    'passes',
    'waits',
  ),
  name: fc.constantFrom(...BROKERS),
  end: fc.integer({ min: 4, max: 9 }),
  hw: fc.integer({ min: 0, max: 5 }),
})

/** What was said of the open segment, and what follows from it. */
class Judge {
  readonly script = new CareScript({ brokers: BROKERS.length })
  private seen = 0
  private readonly boots = new Map<string, number>()
  /** Sure ends that the fence was ever answered with, and ends that the leader gave, by attempt. */
  private sure = new Set<number>()
  private given = new Map<number, Set<number>>()
  private reported = 0
  private cleared = false
  private confirmedMs = 0
  private confirming = true
  private fenced = false
  private staged = new Map<string, { end: number; tailFrom: number; replicas: readonly string[] }>()
  private stored = new Set<string>()
  /** A roll under the present attempt that may yet be applied. */
  private open: Extract<CareEffect, { kind: 'roll' }> | undefined

  get leader(): string {
    return BROKERS.find((name) => idOf(name) === this.script.view.segment.replicas[0]) ?? ''
  }

  private holds(name: string): boolean {
    return this.script.view.segment.replicas.includes(idOf(name))
  }

  does({ kind, name, end, hw }: Step): void {
    const { script } = this
    const boot = this.boots.get(name) ?? 1
    switch (kind) {
      case 'answer':
      case 'unsure':
        if (this.fenced && this.holds(name)) {
          if (kind === 'answer') this.sure.add(end)
          this.reported = Math.max(this.reported, hw)
          if (name === this.leader) this.cleared = true
        }
        script.answers(name, end, {
          highWatermark: hw,
          unsure: kind === 'answer' ? undefined : 'damage',
        })
        break
      case 'give':
      case 'fail': {
        const { attempt } = script.view.segment
        const failed = BROKERS.find((one) => this.holds(one) && one !== this.leader) ?? ''
        const ends = this.given.get(attempt) ?? new Set()
        this.given.set(attempt, ends.add(end))
        script.gives(this.leader, { end, highWatermark: hw }, kind === 'fail' ? failed : '')
        break
      }
      case 'stored': {
        const stage = script.all('stage').at(-1)
        if (stage === undefined || !this.staged.has(stage.token)) break
        this.stored.add(stage.token)
        script.stored()
        break
      }
      case 'not stored':
        if (script.all('stage').length > 0) script.notStored(name)
        break
      case 'dies':
        script.dies(name)
        break
      case 'lives':
        script.lives(name)
        break
      case 'restarts':
        this.boots.set(name, boot + 1)
        if (name === this.leader) this.cleared = true
        script.lives(name, true)
        break
      case 'unfit':
        if (name === this.leader) this.cleared = true
        script.unfit(name, 'restarted')
        break
      case 'silent':
        this.confirming = false
        script.silent()
        break
      case 'heard':
        this.confirming = true
        script.heard()
        break
      case 'commits':
        if (this.open !== undefined) this.commit()
        break
      case 'applied':
      case 'unknown':
      case 'refused':
        if (kind === 'refused') this.open = undefined
        script.outcome(kind)
        break
      case 'drains':
        script.drains(name)
        break
      case 'another':
        script.another()
        this.forget()
        break
      case 'cancel':
        script.apply({ ...script.view.segment, attempt: script.view.segment.attempt + 1 })
        this.open = undefined
        break
      case 'passes':
        this.passes(100)
        break
      default:
        this.passes(1500)
    }
    this.look()
  }

  private passes(ms: number): void {
    for (let i = 0; i < ms; i += 50) {
      if (this.confirming && !this.script.care.withholds) this.confirmedMs = this.script.nowMs + 50
      this.script.passes(50)
      this.look()
    }
  }

  private commit(): void {
    const proposed = this.script.effects.findLast(
      ({ kind }) => kind === 'roll' || kind === 'cancel',
    )
    this.script.commits()
    this.open = undefined
    if (proposed?.kind === 'cancel') return
    this.confirming = true
    this.forget()
  }

  /** A new segment, or a new coordinator: nothing was said yet. */
  private forget(): void {
    this.sure = new Set()
    this.given = new Map()
    this.reported = 0
    this.cleared = false
    this.confirmedMs = this.script.nowMs
    this.fenced = false
    this.staged = new Map()
    this.stored = new Set()
    this.open = undefined
  }

  private look(): void {
    for (; this.seen < this.script.effects.length; this.seen++) {
      const effect = this.script.effects[this.seen]
      if (effect?.kind === 'fence') this.fenced = true
      else if (effect?.kind === 'stage') this.staged.set(effect.token, effect)
      else if (effect?.kind === 'roll') this.judge(effect)
    }
    assert.ok(
      !this.fenced || this.script.care.withholds,
      'a fence was sent, and the lease is not withheld',
    )
  }

  private judge(roll: Extract<CareEffect, { kind: 'roll' }>): void {
    const { script } = this
    const { attempt, replicas } = script.view.segment
    const { token } = roll.placement
    assert.equal(roll.attempt, attempt, 'it names the present attempt')
    const given = this.given.get(attempt)
    assert.ok(
      this.sure.has(roll.end) || given?.has(roll.end) === true,
      'nobody has told of this end',
    )
    assert.ok(this.stored.has(token), 'not all have stored what was staged')
    const staged = this.staged.get(token)
    assert.equal(staged?.end, roll.end)
    assert.equal(staged?.tailFrom, roll.tailFrom)
    assert.deepEqual(staged?.replicas, roll.placement.replicas)
    assert.ok(roll.placement.replicas.length >= 2, 'on too few brokers')
    assert.ok(roll.end >= this.reported, 'below a high watermark that was reported')
    const waitedMs = script.nowMs - this.confirmedMs
    const may = given !== undefined || this.cleared || waitedMs >= SEGMENT_TIMING.leaseGraceMs
    assert.ok(may, `${replicas[0]} may hold a lease still`)
    if (this.open !== undefined) assert.deepEqual(roll, this.open, 'another end under one attempt')
    this.open = roll
  }
}

test('whatever is heard: every roll that is proposed follows from what was said', () => {
  let rolls = 0
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 80 }), (steps) => {
      const judge = new Judge()
      for (const one of steps) judge.does(one)
      rolls += judge.script.all('roll').length
    }),
    { numRuns: 600 },
  )
  assert.ok(rolls > 150, `only ${rolls} rolls`)
})

// The coordinator's machine of one range, alone, with brokers that say exactly what a script has them say: what is heard and what
// is done becomes lines of a dialogue. Times are milliseconds since the election of the coordinator.

import { RangeCare } from '../../../src/core/segment/care.ts'
import type { Candidates, CareEffect, CareView } from '../../../src/core/segment/care-types.ts'
import {
  type EndReason,
  type FenceAnswer,
  type LeadersEnd,
  SEGMENT_TIMING,
} from '../../../src/core/segment/types.ts'
import { type NodeId, nodeId, topicId } from '../../../src/model/ids.ts'

const TICK_MS = 50
const NAMES = 'ABCDEFGH'

export function idOf(name: string): NodeId {
  return nodeId(`${NAMES.indexOf(name).toString(16)}`.padStart(32, '0'))
}

export function nameOf(node: NodeId): string {
  return NAMES[Number.parseInt(node, 16)] as string
}

interface Setup {
  /** How many brokers there are: A, B, ... */
  readonly brokers?: number
  readonly replicas?: string
  readonly replicationFactor?: number
  readonly minInsync?: number
}

/** Effects of one kind. */
export type Of<K extends CareEffect['kind']> = Extract<CareEffect, { kind: K }>

export class CareScript {
  readonly lines: string[] = []
  /** All that was ever wanted. */
  readonly effects: CareEffect[] = []
  nowMs = 0
  care: RangeCare
  view: CareView
  private readonly names: string[]
  private readonly dead = new Set<NodeId>()
  private readonly leaving = new Set<NodeId>()
  private readonly stopping = new Set<NodeId>()
  private readonly boots = new Map<NodeId, number>()
  /** Leaders whose lease is confirmed as time goes on. */
  private confirmed = true
  private tokens = 0
  private said = ''

  constructor(setup: Setup = {}) {
    const { brokers = 4, replicas = 'ABC', replicationFactor = 3, minInsync = 2 } = setup
    this.names = NAMES.slice(0, brokers).split('')
    for (const name of this.names) this.boots.set(idOf(name), 1)
    this.view = {
      topicId: topicId('0'.repeat(32)),
      range: 0,
      segment: { segment: 1, attempt: 0, replicas: replicas.split('').map(idOf) },
      policy: { replicationFactor, minInsyncReplicas: minInsync },
    }
    this.care = this.elect()
  }

  /** Another coordinator: it knows nothing but the log. */
  another(): void {
    this.line('another coordinator is elected')
    this.care = this.elect()
  }

  private elect(): RangeCare {
    const care = new RangeCare({
      view: this.view,
      timing: SEGMENT_TIMING,
      confirmedMs: this.nowMs,
      token: () => `token${++this.tokens}`,
    })
    care.brokers(this.candidates())
    return care
  }

  private candidates(): Candidates {
    return {
      alive: (node) => !this.dead.has(node),
      leaving: (node) => this.leaving.has(node),
      stopping: (node) => this.stopping.has(node),
      members: () => this.names.filter((name) => !this.leaving.has(idOf(name))).length,
      boot: (node) => this.boots.get(node),
      pick: (n, keep, first, without = new Set()) => {
        const good = this.names
          .map(idOf)
          .filter((id) => !this.dead.has(id) && !this.leaving.has(id) && !without.has(id))
        const order = [...keep.filter((id) => good.includes(id)), ...good]
        const picked = [...new Set(order)].slice(0, n)
        if (first === undefined || !picked.includes(first)) return picked
        return [first, ...picked.filter((id) => id !== first)]
      },
    }
  }

  note(text: string): void {
    this.lines.push(`# ${text}`)
  }

  // ---- the world

  passes(ms: number): void {
    const until = this.nowMs + ms
    while (this.nowMs < until) {
      this.nowMs += TICK_MS
      if (this.confirmed) this.care.confirmed(this.leader, this.nowMs, this.boots.get(this.leader))
      this.tick()
    }
  }

  /** The leader's lease requests stop. */
  silent(): void {
    this.line(`${nameOf(this.leader)} asks for no lease any more`)
    this.confirmed = false
  }

  heard(): void {
    this.line(`${nameOf(this.leader)} asks for its lease again`)
    this.confirmed = true
  }

  dies(name: string): void {
    this.line(`SWIM: ${name} is dead`)
    this.dead.add(idOf(name))
  }

  lives(name: string, restarted = false): void {
    const id = idOf(name)
    if (restarted) this.boots.set(id, (this.boots.get(id) ?? 0) + 1)
    this.line(`SWIM: ${name} is alive${restarted ? `, in start ${this.boots.get(id)}` : ''}`)
    this.dead.delete(id)
  }

  drains(name: string): void {
    this.line(`${name} is being drained`)
    this.leaving.add(idOf(name))
  }

  stops(name: string): void {
    this.line(`${name} is being stopped`)
    this.leaving.add(idOf(name))
    this.stopping.add(idOf(name))
  }

  joins(name: string): void {
    this.line(`SWIM: ${name} joins`)
    this.names.push(name)
    this.boots.set(idOf(name), 1)
  }

  // ---- what brokers say

  gives(name: string, end: Partial<LeadersEnd> & { end: number }, failed = ''): void {
    const given: LeadersEnd = {
      attempt: this.view.segment.attempt,
      highWatermark: end.end,
      why: failed === '' ? 'old' : 'follower-failed',
      ...end,
      failed: failed.split('').map((one) => ({ node: idOf(one), why: 'silent' })),
    }
    const who = failed === '' ? '' : `, ${failed.split('').join(' and ')} failed`
    this.line(
      `${name} gives an end under attempt ${given.attempt}: ${given.end}, high watermark ${given.highWatermark}${who}`,
    )
    this.care.gave(idOf(name), this.bootOf(name), given, this.nowMs)
    this.tick()
  }

  answers(name: string, end: number, more: Partial<FenceAnswer> = {}): void {
    const answer = {
      boot: this.bootOf(name),
      end,
      highWatermark: 0,
      unsure: undefined,
      ...more,
    }
    const unsure = answer.unsure === undefined ? '' : `, unsure: ${answer.unsure}`
    this.line(
      `${name} answers the fence, in start ${answer.boot}: ${end}, high watermark ${answer.highWatermark}${unsure}`,
    )
    this.care.fenceAnswered(idOf(name), answer, this.nowMs)
    this.tick()
  }

  unfit(name: string, why: EndReason): void {
    this.line(`${name} cannot go on: ${why}`)
    this.care.unfit(idOf(name), this.bootOf(name), why)
    this.tick()
  }

  /** The holder of the present staging says that all have it. */
  stored(): void {
    const { to, token } = this.last('stage')
    this.line(`${nameOf(to)} says that all have ${token}`)
    const outcome = { nextOffsets: [1], stateDigest: `digest of ${token}` }
    this.care.staged(to, token, outcome, this.nowMs)
    this.tick()
  }

  notStored(by: string): void {
    const { to, token } = this.last('stage')
    this.line(`${nameOf(to)} says that ${by.split('').join(' and ')} did not store ${token}`)
    const failed = by.split('').map((one) => ({ node: idOf(one), why: 'silent' }))
    this.care.staged(to, token, { failed }, this.nowMs)
    this.tick()
  }

  // ---- the log

  /** The last proposal is applied. */
  commits(): void {
    const effect = this.effects.findLast(({ kind }) => kind === 'roll' || kind === 'cancel')
    const { segment } = this.view
    if (effect?.kind === 'roll') {
      const { replicas } = effect.placement
      this.line(`the log: segment ${segment.segment} is sealed at ${effect.end}`)
      this.confirmed = true
      this.apply({ segment: segment.segment + 1, attempt: 0, replicas })
    } else if (effect?.kind === 'cancel') {
      this.line(`the log: attempt ${segment.attempt} is cancelled`)
      this.apply({ ...segment, attempt: segment.attempt + 1 })
    } else throw new Error('nothing was proposed')
  }

  apply(segment: CareView['segment']): void {
    this.view = { ...this.view, segment }
    this.care.applied(this.view, this.nowMs)
    this.tick()
  }

  outcome(outcome: 'applied' | 'refused' | 'unknown'): void {
    this.line(`the proposal: ${outcome}`)
    this.care.proposed(outcome, this.nowMs)
    this.tick()
  }

  // ---- what was wanted

  last<K extends CareEffect['kind']>(kind: K): Of<K> {
    const found = this.all(kind).at(-1)
    if (found === undefined) throw new Error(`no effect ${kind}`)
    return found
  }

  all<K extends CareEffect['kind']>(kind: K): readonly Of<K>[] {
    return this.effects.filter((one): one is Of<K> => one.kind === kind)
  }

  private get leader(): NodeId {
    return this.view.segment.replicas[0] as NodeId
  }

  private bootOf(name: string): number {
    return this.boots.get(idOf(name)) ?? 0
  }

  private tick(): void {
    for (const effect of this.care.tick(this.nowMs)) {
      this.effects.push(effect)
      const told = tell(effect)
      // What is only said again is no news.
      if (told !== this.said && effect.kind !== 'log') this.line(`    ${told}`)
      if (effect.kind !== 'log') this.said = told
      else if (effect.level !== 'info') this.line(`    log, ${effect.level}: ${named(effect.text)}`)
    }
  }

  private line(text: string): void {
    this.lines.push(`${String(this.nowMs).padStart(6)}  ${text}`)
  }
}

function named(text: string): string {
  return text.replaceAll(/[0-9a-f]{32}/g, (id) => nameOf(id as NodeId))
}

function tell(effect: CareEffect): string {
  switch (effect.kind) {
    case 'ask-end':
      return `-> ${nameOf(effect.to)}: give an end under attempt ${effect.attempt}, ${effect.why}`
    case 'fence':
      return `-> ${effect.to.map(nameOf).join(', ')}: take nothing more`
    case 'stage': {
      const { to, token, end, tailFrom, replicas } = effect
      return `-> ${nameOf(to)}: stage ${token} at ${end}, tail from ${tailFrom}, with ${replicas.map(nameOf).join('')}`
    }
    case 'end-refused':
      return `-> ${nameOf(effect.to)}: not now, ${effect.text}`
    case 'roll': {
      const { attempt, end, placement } = effect
      return `proposes the roll under attempt ${attempt}: end ${end}, ${placement.token}, ${placement.replicas.map(nameOf).join('')}`
    }
    case 'cancel':
      return `proposes to cancel attempt ${effect.attempt}`
    case 'log':
      return effect.text
  }
}

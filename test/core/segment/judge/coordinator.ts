// A coordinator in its term, on a broker: it runs the care that is judged over the shard's log. Deposed, it does not know it at
// once: it goes on asking, fencing and ordering, and what it proposes comes to nothing.

import type { Command } from '../../../../src/core/metadata/commands.ts'
import type { Segment } from '../../../../src/core/metadata/types.ts'
import { RangeCare } from '../../../../src/core/segment/care.ts'
import type {
  Candidates,
  CareEffect,
  CareView,
  ProposalOutcome,
  ReplicaPolicy,
} from '../../../../src/core/segment/care-types.ts'
import { LeaseDesk } from '../../../../src/core/segment/lease-desk.ts'
import {
  SealedCare,
  type SealedEffect,
  type SealedView,
} from '../../../../src/core/segment/sealed-care.ts'
import type { EndReason, LeadersEnd } from '../../../../src/core/segment/types.ts'
import type { NodeId } from '../../../../src/model/ids.ts'
import { RANGE, SHARD, TIMING, TOPIC } from './place.ts'
import type { Process } from './process.ts'
import type { World } from './world.ts'

const SEALED_TICK_MS = 100

interface LeaseAsked {
  readonly seq: number
  readonly boot: number
  readonly oldestSyncMs: number
  readonly index: number
  readonly unfit: readonly (readonly [number, EndReason])[]
}

export class Coordinator {
  readonly host: Process
  readonly term: number
  /** Its Raft lease holds. */
  confirms = true
  /** It knows that it does not lead any more. */
  over = false
  applied = 0
  private readonly world: World
  private readonly electedAtMs: number
  private care: RangeCare | undefined
  private readonly desk = new LeaseDesk(TIMING)
  /** By segment. */
  private readonly sealed = new Map<number, SealedCare>()
  private nextSealedMs = 0
  private tokens = 0

  constructor(host: Process, term: number) {
    this.host = host
    this.world = host.world
    this.term = term
    this.electedAtMs = host.now
  }

  get acts(): boolean {
    return this.host.up && !this.over && this.care !== undefined
  }

  /** It has applied an entry of its own term. */
  begins(): void {
    this.desk.leads(SHARD, this.electedAtMs)
    this.applies()
    this.takesCare()
  }

  /** It may be forgotten whenever it is idle: what it must not forget the desk knows. */
  private takesCare(): void {
    const view = this.view()
    if (view === undefined) return
    const leader = view.segment.replicas[0] as NodeId
    this.care = new RangeCare({
      view,
      timing: TIMING,
      confirmedMs: this.desk.lastConfirmedMs(SHARD, leader),
      token: () => `${this.host.broker.name}${this.term}.${this.tokens++}`,
    })
  }

  /** All that has committed so far. */
  applies(): void {
    if (this.term !== this.world.register.term) return
    this.applied = this.world.register.index
    const view = this.view()
    if (view !== undefined) this.care?.applied(view, this.host.now)
    for (const segment of this.segments) {
      this.sealed.get(segment.segment)?.applied(this.sealedView(segment))
    }
  }

  private get segments(): readonly Segment[] {
    return this.world.register.segments(this.applied)
  }

  private get policy(): ReplicaPolicy {
    const { replicationFactor, minInsyncReplicas } = this.world.profile
    return { replicationFactor, minInsyncReplicas }
  }

  private view(): CareView | undefined {
    const segment = this.segments.at(-1)
    if (segment === undefined) return undefined
    return { topicId: TOPIC, range: RANGE, segment, policy: this.policy }
  }

  private sealedView(segment: Segment): SealedView {
    return { topicId: TOPIC, range: RANGE, segment, policy: this.policy }
  }

  // ---- what is heard

  leaseAsked(from: NodeId, { seq, boot, oldestSyncMs, unfit }: LeaseAsked): void {
    const { care, host, world } = this
    if (!this.acts || care === undefined) return
    for (const [number, why] of unfit) {
      if (number === this.segments.at(-1)?.segment) care.unfit(from, boot, why)
    }
    if (!this.confirms) return
    const asked = { from, boot, oldestSyncMs, shards: [SHARD] }
    if (this.desk.request(asked, host.now).shards.length === 0) return
    const open = this.segments.at(-1)
    const withheld = care.withholds && open !== undefined ? [open.segment] : []
    if (open?.replicas[0] === from) care.confirmed(from, host.now, boot)
    const index = this.applied
    world.net.tell(host, from, `lease ${seq} as of ${index}`, (to) => {
      if (to?.boot === boot) to.leaseAnswered(seq, index, withheld)
    })
  }

  gave(from: NodeId, boot: number, number: number, given: LeadersEnd): void {
    if (!this.acts || number !== this.segments.at(-1)?.segment) return
    this.care?.gave(from, boot, given, this.host.now)
  }

  // ---- what it does

  tick(candidates: Candidates): void {
    const { care, host } = this
    if (!this.acts || care === undefined) return
    care.brokers(candidates)
    for (const effect of care.tick(host.now)) this.does(effect)
    if (care.idle && this.world.chance.below(20) === 0) this.takesCare()
    if (host.now < this.nextSealedMs) return
    this.nextSealedMs = host.now + SEALED_TICK_MS
    for (const segment of this.segments.slice(0, -1)) this.tickSealed(segment, candidates)
  }

  private tickSealed(segment: Segment, candidates: Candidates): void {
    const { host, sealed } = this
    const { segment: number } = segment
    let care = sealed.get(number)
    if (care === undefined) {
      care = new SealedCare(this.sealedView(segment), TIMING)
      sealed.set(number, care)
    }
    care.brokers(candidates, host.now)
    for (const effect of care.tick(host.now)) this.doesSealed(number, effect)
  }

  private doesSealed(number: number, effect: SealedEffect): void {
    switch (effect.kind) {
      case 'inspect':
        for (const node of effect.to) this.inspect(node, number)
        return
      case 'settle':
        return this.proposeSealed(number, {
          ...target(number),
          kind: 'SettleSegment',
          digest: effect.digest,
        })
      case 'reassign': {
        const { change, replica, seen } = effect
        const command = { kind: 'ReassignSegment', change, replica, seen } as const
        return this.proposeSealed(number, { ...target(number), ...command })
      }
      case 'log':
        return this.say(`${effect.text} ${JSON.stringify(effect.detail)}`)
    }
  }

  private proposeSealed(number: number, command: Command): void {
    this.world.register.propose(this.term, command, (outcome) => {
      if (this.acts) this.sealed.get(number)?.proposed(outcome, this.host.now)
    })
  }

  private inspect(node: NodeId, number: number): void {
    const { host, world } = this
    this.tell(node, `inspect segment ${number}`, (to) => {
      const answer = to.broker.inspect(to, number)
      if (answer === undefined) return
      world.net.tell(to, host.id, `segment ${number} is ${answer.kind}`, () => {
        if (this.acts) this.sealed.get(number)?.inspected(to.id, answer, host.now, to.boot)
      })
    })
  }

  private does(effect: CareEffect): void {
    const open = this.segments.at(-1)
    if (open === undefined) return
    const { segment: number } = open
    switch (effect.kind) {
      case 'ask-end':
        return this.tell(effect.to, `ask for an end: ${effect.why}`, (to) => {
          to.leading.get(number)?.asked(effect.attempt, effect.why)
        })
      case 'fence':
        for (const node of effect.to) this.fence(node, number)
        return
      case 'stage':
        return this.stage(number, effect)
      case 'roll':
        return this.roll(number, effect)
      case 'cancel':
        return this.propose({ ...target(number), kind: 'CancelEnd', attempt: effect.attempt })
      case 'end-refused':
        return
      case 'log':
        return this.say(`${effect.text} ${JSON.stringify(effect.detail)}`)
    }
  }

  private fence(node: NodeId, number: number): void {
    const { host, world } = this
    this.tell(node, `fence segment ${number}`, (to) => {
      to.broker.fence(to, number, (answer) => {
        world.net.tell(to, host.id, `fenced at ${answer.end}`, () => {
          if (!this.acts || number !== this.segments.at(-1)?.segment) return
          this.care?.fenceAnswered(to.id, answer, host.now)
        })
      })
    })
  }

  private stage(number: number, effect: CareEffect & { kind: 'stage' }): void {
    const { host, world } = this
    const { token, end, tailFrom, replicas } = effect
    const order = { segment: number, token, end, tailFrom, replicas }
    this.tell(effect.to, `stage ${token} at ${end}, tail from ${tailFrom}`, (to) => {
      to.desk.order(order, (outcome) => {
        world.net.tell(to, host.id, `staged ${token}`, () => {
          if (this.acts) this.care?.staged(to.id, token, outcome, host.now)
        })
      })
    })
  }

  private roll(number: number, effect: CareEffect & { kind: 'roll' }): void {
    const { attempt, end, tailFrom, nextOffsets, placement } = effect
    this.say(
      `proposes to seal segment ${number} at ${end} under ${placement.token}, attempt ${attempt}`,
    )
    this.world.seize(this.host, 'a roll is proposed')
    this.propose({
      ...target(number),
      kind: 'RollSegment',
      attempt,
      endEntry: end,
      tailFrom,
      nextOffsets,
      placement,
      timeMs: 0,
    })
  }

  private propose(command: Command): void {
    this.world.register.propose(this.term, command, (outcome: ProposalOutcome) => {
      if (this.acts) this.care?.proposed(outcome, this.host.now)
    })
  }

  private tell(node: NodeId, what: string, run: (to: Process) => void): void {
    this.world.net.tell(this.host, node, what, (to) => {
      if (to !== undefined) run(to)
    })
  }

  private say(text: string): void {
    this.world.say(`coordinator ${this.host.broker.name}/${this.term}: ${text}`)
  }
}

function target(segment: number): { topicId: typeof TOPIC; range: number; segment: number } {
  return { topicId: TOPIC, range: RANGE, segment }
}

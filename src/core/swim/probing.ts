// Finding out who does not answer. Each period one member is probed, in turn over a list in an order by chance, so that each
// is probed within a bounded time:
//
//     0        pingTimeout                                                    period (both times the health factor)
//     ├─ ping ──────┼─ ping-request to helpers ── each pings it too ──────────────┤ no ack: suspect
//     │             │                             ack, or nack at 80 % of theirs  │
//
// Of whom others suspect, it is the turn next: the suspect hears of it at once, and if it does not answer here either, the
// suspicion need not last long. A helper's nack says: I heard you, it is the other. Where nacks are missing, this member is probably at fault itself.
// The dead are pinged as well, ever more rarely: so that the two sides of a partition find each other when it heals.

import type { Address } from '../../base/address.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Life } from '../../model/swim.ts'
import { type SwimHost, shuffled } from './host.ts'
import { compareLives, isLive } from './order.ts'
import type { Known } from './table.ts'

/** Of the ping time-out: so that the nack arrives before who asked gives up. */
const NACK_SHARE = 0.8
/** Pings for others under way: more are not taken. */
const RELAYS_MAX = 256

interface Probe {
  readonly target: NodeId
  readonly life: Life
  readonly sequence: number
  readonly helpersDue: number
  readonly ends: number
  readonly helpers: Set<NodeId>
  readonly nacks: Set<NodeId>
  asked: boolean
  answered: boolean
}

/** A ping for another member. */
interface Relay {
  readonly target: NodeId
  readonly asker: NodeId
  readonly askerAt: Address
  readonly askerSequence: number
  readonly nackAt: number
  readonly ends: number
  nacked: boolean
}

export class Probing {
  private readonly host: SwimHost
  private readonly suspect: (node: NodeId) => void
  private probe: Probe | undefined
  private nextPeriod: number
  private order: NodeId[] = []
  private relays = new Map<number, Relay>()
  private sequence: number

  constructor(host: SwimHost, suspect: (node: NodeId) => void) {
    this.host = host
    this.suspect = suspect
    this.sequence = host.below(0x1_0000_0000)
    // Members that start at one time do not probe at one time.
    this.nextPeriod = host.now + host.below(host.options.settings.periodMs)
  }

  // Time.

  tick(): void {
    const { now } = this.host
    const { probe } = this
    if (probe !== undefined && !probe.asked && !probe.answered && now >= probe.helpersDue) {
      this.askHelpers(probe)
    }
    this.tickRelays()
    if (now >= this.nextPeriod) {
      this.judge()
      this.begin()
    }
    this.probeDead()
  }

  get nextTick(): number {
    const { probe, nextPeriod } = this
    let next = nextPeriod
    if (probe !== undefined && !probe.asked && !probe.answered) {
      next = Math.min(next, probe.helpersDue)
    }
    for (const relay of this.relays.values()) {
      next = Math.min(next, relay.nacked ? relay.ends : relay.nackAt)
    }
    for (const known of this.host.table.dead()) next = Math.min(next, known.probeAt)
    return next
  }

  /** This member slept: the answers wait to be read, and count. */
  shift(ms: number): void {
    this.nextPeriod += ms
    const { probe } = this
    if (probe !== undefined) {
      this.probe = { ...probe, helpersDue: probe.helpersDue + ms, ends: probe.ends + ms }
    }
  }

  // The own probe.

  private begin(): void {
    const { host } = this
    const { periodMs, pingTimeoutMs } = host.options.settings
    const { factor } = host.health
    this.nextPeriod = host.now + periodMs * factor
    const target = this.nextTarget()
    if (target === undefined) {
      host.health.better()
      return
    }
    host.counters.probes++
    this.probe = {
      target: target.member.node,
      life: target.member,
      sequence: this.nextSequence(),
      helpersDue: host.now + pingTimeoutMs * factor,
      ends: this.nextPeriod,
      helpers: new Set(),
      nacks: new Set(),
      asked: false,
      answered: false,
    }
    this.ping(target, this.probe.sequence)
  }

  private nextTarget(): Known | undefined {
    const { table } = this.host
    // Twice: what is left of this turn may be gone all of it.
    for (let turn = 0; turn < 2; turn++) {
      for (let node = this.order.pop(); node !== undefined; node = this.order.pop()) {
        const known = table.get(node)
        if (known !== undefined && isLive(known.member.state)) return known
      }
      this.order = shuffled(
        this.host,
        table.live().map(({ member }) => member.node),
      )
    }
    return undefined
  }

  /** It takes its turn somewhere in this round already. */
  arrived(node: NodeId): void {
    if (this.order.includes(node)) return
    this.order.splice(this.host.below(this.order.length + 1), 0, node)
  }

  /** Its turn comes now: whether it answers here as well is what everybody waits for. */
  next(node: NodeId): void {
    this.order = this.order.filter((other) => other !== node)
    this.order.push(node)
  }

  /** What it has to say comes along with the answer. */
  askOnce(known: Known): void {
    this.ping(known, this.nextSequence())
  }

  private askHelpers(probe: Probe): void {
    const { host } = this
    const { target, sequence } = probe
    probe.asked = true
    const known = host.table.get(target)
    if (known === undefined) return
    const others = host.table
      .live()
      .filter(({ member }) => member.state === 'alive' && member.node !== target)
    for (const { member } of shuffled(host, others).slice(0, host.options.settings.helpers)) {
      probe.helpers.add(member.node)
      host.send(member.profile.cluster, member.node, {
        kind: 'ping-request',
        sequence,
        target,
        address: known.member.profile.cluster,
      })
    }
  }

  private judge(): void {
    const { host, probe } = this
    this.probe = undefined
    if (probe === undefined) return
    if (probe.answered) {
      host.health.better()
      return
    }
    const known = host.table.get(probe.target)
    // It has gone, left, or begun a new life meanwhile.
    if (known === undefined || !isLive(known.member.state)) return
    if (compareLives(known.member, probe.life) !== 0) return
    host.counters.probesFailed++
    const { helpers, nacks } = probe
    host.health.worse(helpers.size === 0 ? 1 : helpers.size - nacks.size)
    this.suspect(probe.target)
  }

  // The dead.

  private probeDead(): void {
    const { host } = this
    const { deadProbeMaxMs } = host.options.settings
    for (const known of host.table.dead()) {
      if (host.now < known.probeAt) continue
      known.probeWaitMs = Math.min(deadProbeMaxMs, 2 * known.probeWaitMs)
      known.probeAt = host.now + known.probeWaitMs * (0.75 + host.options.chance() / 2)
      this.ping(known, this.nextSequence())
    }
  }

  private ping({ member }: Known, sequence: number): void {
    const { node, profile } = member
    this.host.send(profile.cluster, node, { kind: 'ping', sequence, to: node })
  }

  private nextSequence(): number {
    this.sequence = (this.sequence + 1) >>> 0
    return this.sequence
  }

  // Answers.

  onAck(from: NodeId, sequence: number): void {
    const { probe } = this
    if (probe?.sequence === sequence && (from === probe.target || probe.helpers.has(from))) {
      probe.answered = true
      return
    }
    const relay = this.relays.get(sequence)
    if (relay === undefined || relay.target !== from) return
    this.relays.delete(sequence)
    this.host.send(relay.askerAt, relay.asker, { kind: 'ack', sequence: relay.askerSequence })
  }

  onNack(from: NodeId, sequence: number): void {
    const { probe } = this
    if (probe?.sequence === sequence && probe.helpers.has(from)) probe.nacks.add(from)
  }

  // For others.

  onPingRequest(
    asker: NodeId,
    askerAt: Address,
    { sequence, target, address }: { sequence: number; target: NodeId; address: Address },
  ): void {
    const { host } = this
    const { pingTimeoutMs, periodMs } = host.options.settings
    if (this.relays.size >= RELAYS_MAX) {
      host.counters.dropped++
      return
    }
    const own = this.nextSequence()
    this.relays.set(own, {
      target,
      asker,
      askerAt,
      askerSequence: sequence,
      nackAt: host.now + pingTimeoutMs * NACK_SHARE,
      ends: host.now + periodMs,
      nacked: false,
    })
    const at = host.table.get(target)?.member.profile.cluster ?? address
    host.send(at, target, { kind: 'ping', sequence: own, to: target })
  }

  private tickRelays(): void {
    const { host } = this
    for (const [sequence, relay] of this.relays) {
      if (!relay.nacked && host.now >= relay.nackAt) {
        relay.nacked = true
        host.send(relay.askerAt, relay.asker, { kind: 'nack', sequence: relay.askerSequence })
      }
      if (host.now >= relay.ends) this.relays.delete(sequence)
    }
  }
}

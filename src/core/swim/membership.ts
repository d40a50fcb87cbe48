// What becomes of news: who is believed, what is told on, when suspicion becomes certainty.
//
//              probe failed                    nobody heard from it in time
//     alive ──────────────────> suspect ─────────────────────────────────────> dead ──long ago──> forgotten
//       ^ ^                        |                                            |
//       | └──refutes: incarnation──┘                                            |
//       └────refutes, or a new life──────────────────────────────────────────────┘
//       any ──says so itself──> left ──long ago──> forgotten
//
// A suspicion lasts long when one node alone has it, for that one may be at fault itself, and shrinks as others who found out
// by themselves confirm it (Lifeguard):
//
//     max - (max - min) * log(confirmations + 1) / log(expected + 1)
//
// Before it ends the suspect is asked for a last word: its refutation may have passed by whoever is not told everything, and
// when two parts of a cluster meet there is much to tell.
//
// What is forgotten is not learned again as dead or left, or two members would remind each other of it for ever.

import { assert } from '../../base/assert.ts'
import type { NodeId } from '../../model/ids.ts'
import { type Member, SUSPECTERS_MAX, type Update } from '../../model/swim.ts'
import type { SwimHost } from './host.ts'
import { compareLives, compareNews, isLive } from './order.ts'
import { type Known, movesView } from './table.ts'

/** An unconfirmed suspicion lasts so many times as long as a confirmed one. */
const SUSPICION_SPREAD = 6

/** Of the members. */
const HELD_SHARE_MAX = 0.2

/** What the rest of a member does when somebody comes and goes. */
export interface MembershipListener {
  /** One that was not live is; `back`: it was thought dead. */
  arrived(known: Known, back: boolean): void
  /** Others say that it does not answer. */
  suspected(known: Known): void
  /** It will be dead soon, unless it answers. */
  doubtful(known: Known): void
  /** A later life of this node than this one is about. */
  superseded(by: Member): void
}

export class Membership {
  private readonly host: SwimHost
  private readonly listener: MembershipListener

  constructor(host: SwimHost, listener: MembershipListener) {
    this.host = host
    this.listener = listener
  }

  // News.

  /** `reporter`: who has believed it for long, perhaps; undefined for news. */
  learn(update: Update, reporter: NodeId | undefined): void {
    const { table, now, counters } = this.host
    const { member } = update
    if (member.node === table.self.node) return this.hearOfSelf(member)
    const known = table.get(member.node)
    if (known === undefined) {
      if (!isLive(member.state)) return
      const added = table.add(member, now)
      if (added === undefined) counters.dropped++
      else this.changed(added, undefined, false, update.suspectedBy)
      return
    }
    const order = compareNews(member, known.member)
    if (order < 0) return
    if (order === 0) return this.confirm(known, update.suspectedBy)
    // What somebody has believed for long may come from the other side of a partition: it may be contradicted first.
    if (member.state === 'dead' && reporter !== undefined && isLive(known.member.state)) {
      const suspect: Update = { member: { ...member, state: 'suspect' }, suspectedBy: [reporter] }
      return this.learn(suspect, undefined)
    }
    this.take(known, member, update.suspectedBy)
  }

  /** This member's own probe of it failed. */
  suspect(node: NodeId): void {
    const known = this.host.table.get(node)
    if (known === undefined) return
    const by = [this.host.table.self.node]
    if (known.member.state === 'suspect') this.confirm(known, by)
    if (known.member.state !== 'alive') return
    this.host.counters.suspicions++
    this.take(known, { ...known.member, state: 'suspect' }, by)
  }

  private take(known: Known, member: Member, suspectedBy: readonly NodeId[]): void {
    const before = known.member
    known.member = member
    const restarted = compareLives(member, before) !== 0
    this.changed(known, before, restarted, suspectedBy)
  }

  private changed(
    known: Known,
    before: Member | undefined,
    restarted: boolean,
    suspectedBy: readonly NodeId[],
  ): void {
    const { host } = this
    const { table, now } = host
    const { member } = known
    const was = before?.state
    if (restarted || was !== member.state || before?.incarnation !== member.incarnation) {
      known.since = now
      known.askedAt = undefined
    }
    known.suspectedBy = member.state === 'suspect' ? suspectedBy.slice(0, SUSPECTERS_MAX) : []
    if (member.state === 'dead' && was !== 'dead') this.bury(known)
    host.gossip.tell({ member, suspectedBy: known.suspectedBy })
    if (before !== undefined) this.judgeSteadiness(known, before, restarted)
    const comes = before === undefined || restarted || !isLive(before.state)
    const goes = before !== undefined && isLive(before.state) !== isLive(member.state)
    const moves = before !== undefined && movesView(before.profile, member.profile)
    if (comes || goes || moves) table.changed(now)
    else if (was === 'suspect' && !known.held) table.settledAt = now
    host.emit({ kind: 'member', member, was, restarted })
    this.tellListener(known, comes, was === 'dead')
  }

  private tellListener(known: Known, comes: boolean, back: boolean): void {
    const { table, options } = this.host
    const { state } = known.member
    if (!isLive(state)) return this.forgetOldest(options.settings.deadMax)
    if (comes) this.listener.arrived(known, back)
    const own = known.suspectedBy.includes(table.self.node)
    if (state === 'suspect' && !own) this.listener.suspected(known)
  }

  private confirm(known: Known, by: readonly NodeId[]): void {
    if (known.member.state !== 'suspect') return
    const all = new Set([...known.suspectedBy, ...by])
    if (all.size === known.suspectedBy.length || known.suspectedBy.length >= SUSPECTERS_MAX) return
    known.suspectedBy = [...all].slice(0, SUSPECTERS_MAX)
    this.host.gossip.tell({ member: known.member, suspectedBy: known.suspectedBy })
  }

  // This member itself.

  private hearOfSelf(member: Member): void {
    const { host } = this
    const { self } = host.table
    const lives = compareLives(member, self)
    if (lives > 0) return this.listener.superseded(member)
    // Whoever says this is behind, and hears better.
    if (lives < 0 || member.incarnation < self.incarnation) {
      if (!host.gossip.tells(self.node)) this.tellSelf()
      return
    }
    const agreed = member.state === 'alive' && member.incarnation === self.incarnation
    if (agreed || self.state === 'left') return
    host.counters.refutations++
    host.health.worse()
    this.raise(member.incarnation, {})
  }

  /** Says something new of itself: `least` is the incarnation that it must be above. */
  raise(least: number, change: Partial<Pick<Member, 'state' | 'profile'>>): void {
    const { table } = this.host
    const incarnation = Math.max(least, table.self.incarnation) + 1
    assert(Number.isSafeInteger(incarnation), 'incarnations grow by one')
    table.self = { ...table.self, ...change, incarnation }
    this.tellSelf()
  }

  tellSelf(): void {
    this.host.gossip.tell({ member: this.host.table.self, suspectedBy: [] })
  }

  // Time.

  tick(): void {
    const { table, now } = this.host
    for (const known of table.suspects()) {
      if (now >= this.lastWordAt(known)) {
        known.askedAt = now
        this.listener.doubtful(known)
      }
      if (now >= this.diesAt(known)) this.take(known, { ...known.member, state: 'dead' }, [])
    }
    for (const known of table.all()) {
      if (known.held && !known.flaps.isHeld(now)) {
        known.held = false
        if (isLive(known.member.state)) table.changed(now)
      }
    }
  }

  get nextTick(): number {
    let next = Number.POSITIVE_INFINITY
    for (const known of this.host.table.all()) {
      if (known.member.state === 'suspect') {
        next = Math.min(next, this.lastWordAt(known), this.diesAt(known))
      }
      if (known.held) next = Math.min(next, known.flaps.heldUntil)
    }
    return next
  }

  /** This member slept: nobody could have answered it. */
  shift(ms: number): void {
    for (const known of this.host.table.suspects()) {
      known.since += ms
      if (known.askedAt !== undefined) known.askedAt += ms
    }
  }

  private lastWordAt(known: Known): number {
    if (known.askedAt !== undefined) return Number.POSITIVE_INFINITY
    return this.suspicionEnds(known) - this.host.options.settings.periodMs
  }

  private diesAt(known: Known): number {
    if (known.askedAt === undefined) return Number.POSITIVE_INFINITY
    return Math.max(
      this.suspicionEnds(known),
      known.askedAt + this.host.options.settings.pingTimeoutMs,
    )
  }

  private suspicionEnds({ since, suspectedBy }: Known): number {
    const { table, options } = this.host
    const { periodMs, suspicionPeriods } = options.settings
    const members = table.liveCount
    const min = suspicionPeriods * periodMs * Math.max(1, Math.log10(members))
    // The suspect and who suspected it first are no confirmation.
    const expected = Math.min(SUSPECTERS_MAX - 1, members - 2)
    if (expected < 1) return since + min
    const max = SUSPICION_SPREAD * min
    const confirmations = Math.max(0, suspectedBy.length - 1)
    const share = Math.log(confirmations + 1) / Math.log(expected + 1)
    return since + Math.max(min, max - (max - min) * share)
  }

  // Those who come and go.

  private judgeSteadiness(known: Known, before: Member, restarted: boolean): void {
    const { host } = this
    const { table, now } = host
    const { settings } = host.options
    const { flaps, member } = known
    if (!isLive(member.state)) return
    if (restarted || before.state === 'dead') flaps.returned(now, settings)
    else if (before.state === 'suspect' && member.state === 'alive') {
      flaps.refuted(now, settings)
    } else return
    const holdMs = flaps.holdMs(settings)
    // If many seem to come and go, it is the network, or this member: then nobody is held back for it.
    const held = table.live().filter((one) => one.held && one !== known).length
    if (holdMs === 0 || held >= Math.max(1, HELD_SHARE_MAX * table.liveCount)) return
    flaps.heldUntil = Math.max(flaps.heldUntil, now + holdMs)
    if (!known.held && isLive(before.state)) table.changed(now)
    known.held = true
    const leftOut = holdMs >= settings.holdMaxMs
    host.emit({ kind: 'held', node: member.node, holdMs, leftOut })
  }

  // The dead.

  private bury(known: Known): void {
    const { now, options } = this.host
    const { deadProbeMinMs } = options.settings
    known.probeWaitMs = deadProbeMinMs
    known.probeAt = now + deadProbeMinMs / 2 + this.host.below(deadProbeMinMs)
  }

  forget(): void {
    const { table, now, options } = this.host
    for (const known of table.all()) {
      const gone = !isLive(known.member.state)
      if (gone && now - known.since >= options.settings.forgetMs) this.drop(known)
    }
  }

  private forgetOldest(most: number): void {
    const gone = [...this.host.table.all()].filter(({ member }) => !isLive(member.state))
    if (gone.length <= most) return
    const oldest = gone.reduce((a, b) => (b.since < a.since ? b : a))
    this.drop(oldest)
  }

  private drop({ member }: Known): void {
    this.host.table.remove(member.node)
    this.host.gossip.forget(member.node)
    this.host.emit({ kind: 'forgotten', node: member.node })
  }
}

// One seed's world, in virtual time: brokers with one range between them, a log that coordinators come to terms over, and a
// network. What is wrong is for truth.ts to say, what goes wrong comes from trouble.ts.
//
//   |<------- trouble ------->|<----- peace: all must be well within PEACE_MS ----->|

import { AssertionFailed } from '../../../../src/base/assert.ts'
import { type Prng, prng } from '../../../../src/base/prng.ts'
import type { Command } from '../../../../src/core/metadata/commands.ts'
import type { Segment } from '../../../../src/core/metadata/types.ts'
import type { Candidates } from '../../../../src/core/segment/care-types.ts'
import type { NodeId } from '../../../../src/model/ids.ts'
import { POLICY_DEFAULTS } from '../../../../src/model/policy.ts'
import { SimClock } from '../../../../src/sim/ports/clock.ts'
import { memberId } from '../../raft/story.ts'
import { Broker } from './broker.ts'
import { Coordinator } from './coordinator.ts'
import type { Disk } from './disk.ts'
import { Net } from './net.ts'
import { whatIsMissing } from './peace.ts'
import { RANGE, TOPIC } from './place.ts'
import type { Process } from './process.ts'
import { Producers } from './producers.ts'
import { type Profile, profileOf } from './profile.ts'
import { Register } from './register.ts'
import { damage, makePeace, makeTrouble } from './trouble.ts'
import { Truth } from './truth.ts'

const TICK_MS = 20
const CHECK_MS = 250
const TROUBLE_MS = 12_000
const PEACE_MS = 90_000
const DEAD_AFTER_MS = 900

export interface SegmentRun {
  readonly violations: readonly string[]
  readonly story: readonly string[]
  readonly acknowledged: number
  readonly segments: number
  readonly peaceMs: number
}

export function runSegment(seed: number, tell = false): SegmentRun {
  return new World(seed, tell).whole()
}

export class World {
  readonly clock: SimClock = new SimClock()
  readonly chance: Prng
  readonly profile: Profile
  readonly truth: Truth
  readonly register: Register
  readonly producers: Producers
  readonly brokers: Broker[] = []
  readonly coordinators: Coordinator[] = []
  calm = false
  readonly net: Net
  /** Disks that may still go bad. */
  disksLeft: number
  private readonly story: string[] = []
  readonly tellsAll: boolean

  constructor(seed: number, tellsAll: boolean) {
    this.tellsAll = tellsAll
    this.chance = prng(seed)
    this.profile = profileOf(this.chance)
    this.truth = new Truth(this)
    this.net = new Net(this)
    this.register = new Register(this)
    this.producers = new Producers(this)
    this.disksLeft = Math.min(1, this.profile.minInsyncReplicas - 1)
    for (let i = 0; i < this.profile.brokers; i++) this.addBroker()
  }

  addBroker(): Broker {
    const broker = new Broker(this, memberId(this.brokers.length))
    this.brokers.push(broker)
    return broker
  }

  whole(): SegmentRun {
    if (this.tellsAll) this.say(JSON.stringify(this.profile))
    this.guarded(() => this.founds())
    this.every(TICK_MS, () => this.tick())
    this.every(CHECK_MS, () => this.truth.check())
    this.every(this.profile.produceMs, () => this.producers.tick())
    const trouble = (): void => {
      if (this.calm) return
      makeTrouble(this)
      this.clock.after(this.profile.troubleMs * 2 * this.chance.float(), trouble)
    }
    this.clock.after(this.profile.startsAfterMs, trouble)
    this.runUntil(this.profile.startsAfterMs + TROUBLE_MS, () => false)
    const peaceMs = this.truth.violations.length === 0 ? this.peace() : 0
    const { truth, story, register } = this
    const segments = register.segments(register.index).length
    const { violations, acknowledgedCount: acknowledged } = truth
    return { violations, story, acknowledged, segments, peaceMs }
  }

  private founds(): void {
    const { partitions, replicationFactor, minInsyncReplicas } = this.profile
    const replicas = this.brokers.slice(0, replicationFactor).map(({ id }) => id)
    const sizes = { partitions, replicationFactor, minInsyncReplicas }
    this.register.commit({
      kind: 'CreateTopic',
      name: 'orders',
      topicId: TOPIC,
      policy: { ...POLICY_DEFAULTS, ...sizes },
      placement: [{ replicas, token: '', stateDigest: '' }],
      creationToken: '',
      ifNotExists: false,
      system: false,
      timeMs: 0,
    })
    for (const broker of this.brokers) broker.start()
    this.clock.after(1, () => this.elect())
  }

  private peace(): number {
    const start = this.clock.monotonic()
    this.say('peace')
    this.calm = true
    this.guarded(() => makePeace(this))
    let missing: string | undefined = 'everything'
    const acknowledged = this.producers.least
    this.runUntil(start + PEACE_MS, () => {
      missing = whatIsMissing(this, acknowledged)
      return missing === undefined
    })
    if (this.truth.violations.length === 0 && missing !== undefined) {
      this.truth.violation(`I14: after ${PEACE_MS} ms of peace: ${missing}`)
    }
    return this.clock.monotonic() - start
  }

  // ---- time

  private every(ms: number, run: () => void): void {
    this.clock.after(ms, () => {
      run()
      this.every(ms, run)
    })
  }

  later(ms: number, run: () => void): void {
    this.clock.after(ms, run)
  }

  private runUntil(end: number, done: () => boolean): void {
    let next = this.clock.monotonic()
    while (this.truth.violations.length === 0 && this.clock.monotonic() < end) {
      this.guarded(() => this.clock.step())
      if (this.clock.monotonic() < next) continue
      next = this.clock.monotonic() + CHECK_MS
      if (done()) return
    }
  }

  private guarded(run: () => void): void {
    try {
      run()
    } catch (error) {
      if (!(error instanceof AssertionFailed)) throw error
      this.truth.violation(`a machine's own promise is broken: ${error.message}`)
    }
  }

  private tick(): void {
    for (const { process, paused } of this.brokers) {
      if (process === undefined || paused) continue
      process.tick()
      const often = this.calm ? 20 : this.profile.feedMs
      if (this.chance.float() * (TICK_MS + often) < TICK_MS) this.feeds(process)
    }
    for (const coordinator of this.coordinators) {
      if (!coordinator.acts || coordinator.host.broker.paused) continue
      coordinator.applies()
      coordinator.tick(this.candidates())
    }
  }

  say(line: string): void {
    this.story.push(`${this.clock.monotonic().toFixed(1).padStart(8)} ${line}`)
  }

  brokerOf(id: NodeId): Broker {
    return this.brokers.find((one) => one.id === id) as Broker
  }

  // ---- how long things take

  netMs(): number {
    return this.profile.netMs * (0.2 + this.chance.float())
  }

  commitMs(): number {
    return this.profile.commitMs * (0.5 + this.chance.float())
  }

  syncMs(disk: Disk): number {
    const { chance, profile, calm } = this
    const ms = profile.syncMs * (0.2 + chance.float())
    if (calm) return Math.min(ms, 20)
    const stuckMs = Math.max(0, disk.stuckUntil - this.clock.monotonic())
    return ms + stuckMs + (chance.float() < profile.slowSyncShare ? chance.float() * 1500 : 0)
  }

  // ---- coordinators

  get coordinator(): Coordinator | undefined {
    return this.coordinators.at(-1)
  }

  /** As a broker knows it: mostly the one there is. */
  coordinatorFor(process: Process): Coordinator | undefined {
    const acting = this.coordinators.filter(({ host, over }) => host.up && !over)
    const stale = !this.calm && acting.length > 1 && this.chance.below(4) === 0
    const one = stale ? acting[0] : acting.at(-1)
    return one === undefined || process.up ? one : undefined
  }

  elect(): void {
    const able = this.brokers.filter((one) => one.process !== undefined && !one.paused)
    const host = able[this.chance.below(Math.max(1, able.length))]?.process
    if (host === undefined) {
      this.later(200, () => this.elect())
      return
    }
    const before = this.coordinator
    if (before !== undefined) before.confirms = false
    const term = this.register.elect()
    const coordinator = new Coordinator(host, term)
    this.coordinators.push(coordinator)
    this.say(`${host.broker.name} is elected coordinator in term ${term}`)
    // The one before hears of it, some time.
    if (before !== undefined) this.later(this.chance.float() * 1500, () => this.deposes(before))
    this.later(this.commitMs() * 2, () => this.begins(coordinator))
  }

  private deposes(coordinator: Coordinator): void {
    coordinator.over = true
    this.coordinators.splice(this.coordinators.indexOf(coordinator), 1)
  }

  private begins(coordinator: Coordinator): void {
    if (!coordinator.host.up || !this.register.beginTerm(coordinator.term)) return
    coordinator.begins()
  }

  /** Nobody leads for a while after a leader is gone. */
  electSoon(): void {
    const before = this.coordinator
    if (before !== undefined) before.confirms = false
    this.later(this.chance.float() * 600, () => {
      if (this.coordinator === before) this.elect()
    })
  }

  asksForCancel(process: Process, segment: number, attempt: number): void {
    const { coordinator } = this
    if (coordinator === undefined || this.net.isCut(process.id, coordinator.host.id)) return
    const { term } = coordinator
    const command: Command = { kind: 'CancelEnd', topicId: TOPIC, range: RANGE, segment, attempt }
    this.later(this.netMs(), () => {
      if (coordinator.host.up) this.register.propose(term, command, () => {})
    })
  }

  /** As when a leader has waited too long, whoever it is that asks. */
  cancelsEnd(): void {
    const open = this.register.segments(this.register.index).at(-1)
    if (open === undefined || this.coordinator === undefined) return
    const { segment, attempt } = open
    const at = { topicId: TOPIC, range: RANGE, segment, attempt }
    this.register.propose(this.coordinator.term, { kind: 'CancelEnd', ...at }, () => {})
  }

  // ---- the log comes to the brokers

  committed(
    command: Command,
    before: readonly Segment[],
    after: readonly Segment[],
    ok: boolean,
  ): void {
    const words = 'segment' in command ? ` of segment ${command.segment}` : ''
    this.say(`${ok ? 'committed' : 'refused'}: ${command.kind}${words}`)
    for (const [i, segment] of after.entries()) {
      const successor = after[i + 1]
      if (segment.digest !== '' && before[i]?.digest === '') this.truth.settled(segment)
      if (segment.state !== 'sealed' || before[i]?.state === 'sealed') continue
      const end = segment.endEntry ?? 0
      const holders = successor?.replicas.map((id) => this.brokerOf(id).name).join(' ')
      this.say(`segment ${segment.segment} is sealed at ${end}, its successor is on ${holders}`)
      if (successor !== undefined) this.truth.sealed(segment, successor)
    }
    for (const broker of this.brokers) {
      this.later(this.profile.feedMs * this.chance.float(), () => {
        if (broker.process !== undefined && !broker.paused) this.feeds(broker.process)
      })
    }
  }

  /** It gets what has committed, if it can reach who leads the shard. */
  private feeds(process: Process): void {
    const { coordinator, register } = this
    if (process.applied >= register.index || coordinator === undefined) return
    if (coordinator.host !== process && this.net.isCut(process.id, coordinator.host.id)) return
    if (!coordinator.host.up) return
    process.applies(register.index)
  }

  // ---- who is there

  alive(broker: Broker): boolean {
    const now = this.clock.monotonic()
    if (broker.disk.lost) return now - broker.downSince < DEAD_AFTER_MS
    if (now < broker.suspectedUntil) return false
    return broker.process !== undefined || now - broker.downSince < DEAD_AFTER_MS
  }

  candidates(): Candidates {
    return {
      // Whose disk is lost is removed by whoever runs the cluster.
      members: () => this.brokers.filter(({ disk, draining }) => !disk.lost && !draining).length,
      pick: (n, keep, first, without) => {
        const able = this.brokers
          .filter((one) => this.alive(one) && one.process !== undefined && !one.draining)
          .map(({ id }) => id)
          .filter((id) => without?.has(id) !== true)
        const kept = able.filter((id) => keep.includes(id))
        const ordered = new Set([...able.filter((id) => id === first), ...kept, ...able])
        return [...ordered].slice(0, n)
      },
      alive: (node) => this.alive(this.brokerOf(node)),
      leaving: (node) => this.brokerOf(node).draining,
      boot: (node) => this.brokerOf(node).knownBoot,
    }
  }

  /** Whoever has just done something of weight may die of it. */
  seize(process: Process, why: string): void {
    const { chance, profile, calm } = this
    if (calm || !process.up || chance.float() >= profile.seizeShare) return
    const ms = chance.below(2) === 0 ? 0 : chance.float() * profile.netMs * 4
    this.later(ms, () => {
      if (!process.up || this.calm) return
      this.say(`${process.broker.name} is killed: ${why}`)
      if (!damage(this, process.broker)) this.kills(process.broker)
    })
  }

  kills(broker: Broker): void {
    const leads = this.coordinator?.host === broker.process
    broker.kill()
    const ms =
      this.chance.below(3) === 0 ? 2000 + this.chance.float() * 4000 : this.chance.float() * 500
    this.later(ms, () => {
      if (!this.calm) broker.start()
    })
    if (leads) this.electSoon()
  }
}

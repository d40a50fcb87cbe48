// From whom each partition is read. Any replica will do, so a partition whose broker fails, knows too little or sends us
// elsewhere goes on at another one, where it stood, and the others do not notice. One stream per broker carries all that
// begin together.
//
//   chosen ──opened──> read ──failed──> another replica is left: at once ──> chosen
//     ^                             └─> none is, or we were sent around:     rest, look the topic up, try all again
//     └────────────────────────────────────────────────────────────────────────┘
//
// OFFSET_OUT_OF_RANGE is a matter of the leader alone: a replica that lags would send a reader back to the start. So where
// the log begins and ends is asked of the leader, and only what lies outside of that is out of range.

import { Backoff } from '../../base/backoff.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Timer } from '../../ports/clock.ts'
import type { ConsumeData } from '../../wire/native/consume-data.ts'
import type { Cluster } from '../cluster.ts'
import { type LogRange, logRange } from '../offsets.ts'
import { Patience } from '../patience.ts'
import { addressName, type Replica, type TopicRoute } from '../route.ts'
import { deadlineIn } from '../timing.ts'
import {
  choose,
  hasOther,
  home,
  type Reading,
  type ReadPartition,
  readingOf,
  sentBy,
} from './reading.ts'
import { Session } from './session.ts'
import type { ConsumerSettings } from './settings.ts'

interface ReadersEvents<P> {
  pushed(state: P, data: ConsumeData): void
  /** The leader says that its next offset lies outside of this. */
  outOfRange(state: P, range: LogRange): void
  /** Trying on cannot help. */
  failed(error: EastGuardError): void
}

/** So many moves are made at once; then, as when brokers send us in a circle, with pauses. */
const HOPS_AT_ONCE = 4
/** A broker that failed is not asked again for so long while there are others. */
const AVOID_MS = 10_000
/** A stream that lasted this long was a good one: what ends it is new trouble. */
const STEADY_MS = 5000
/** How often partitions that were driven away from the nearest replica look whether they can go back. */
const HOME_MS = 30_000

export class Readers<P extends ReadPartition> {
  private readonly cluster: Cluster
  private readonly settings: ConsumerSettings
  private readonly events: ReadersEvents<P>
  private readonly patience: Patience
  private readonly readings = new Map<number, Reading<P>>()
  private route: TopicRoute | undefined
  private sessions = new Set<Session>()
  private moving = new Set<Reading<P>>()
  private moveQueued = false
  private reopenQueued = false
  private retryTimer: Timer | undefined
  private homeTimer: Timer | undefined
  /** Raised by all that makes what was asked before void. */
  private openings = 0
  private closed = false

  constructor(cluster: Cluster, settings: ConsumerSettings, events: ReadersEvents<P>) {
    this.cluster = cluster
    this.settings = settings
    this.events = events
    const { clock, log } = cluster.ports
    this.patience = new Patience(clock, log, settings.topic, 'read')
  }

  start(route: TopicRoute, states: Iterable<P>): void {
    this.route = route
    for (const state of states) this.readings.set(state.partition, readingOf(state))
    this.read(this.readings.values())
  }

  /** Closes all streams, and opens them anew at the end of this turn, where the partitions then stand. */
  reopen(): void {
    if (this.reopenQueued || this.closed) return
    this.reopenQueued = true
    this.closeSessions()
    queueMicrotask(() => {
      this.reopenQueued = false
      if (this.closed) return
      this.closeSessions()
      // Places of another offset.
      for (const reading of this.readings.values()) reading.sentTo = []
      this.lookUp([...this.readings.values()])
    })
  }

  /** This partition alone goes on from elsewhere. */
  restart(state: P): void {
    const reading = this.readings.get(state.partition)
    if (reading === undefined) return
    reading.sentTo = []
    this.move(reading)
  }

  /** The reader has taken so many bytes of what was pushed. */
  taken(state: P, bytes: number): void {
    const reading = this.readings.get(state.partition)
    if (reading === undefined) return
    reading.queuedBytes -= bytes
    reading.session?.taken(bytes)
  }

  close(): void {
    this.closed = true
    this.homeTimer?.cancel()
    this.closeSessions()
  }

  private closeSessions(): void {
    this.openings++
    this.retryTimer?.cancel()
    this.retryTimer = undefined
    this.moving.clear()
    const { sessions } = this
    this.sessions = new Set()
    for (const session of sessions) session.close()
    for (const reading of this.readings.values()) reading.session = undefined
  }

  private get nowMs(): number {
    return this.cluster.ports.clock.monotonic()
  }

  private read(readings: Iterable<Reading<P>>): void {
    const { route } = this
    if (route === undefined || this.closed) return
    const groups = new Map<string, { replica: Replica | undefined; readings: Reading<P>[] }>()
    for (const reading of readings) {
      const { paused, position, end } = reading.state
      if (paused || position === end || reading.session !== undefined) continue
      const replica = choose(route, reading, this.cluster.near, this.nowMs)
      const name = replica === undefined ? '' : addressName(replica.address)
      const group = groups.get(name)
      if (group === undefined) groups.set(name, { replica, readings: [reading] })
      else group.readings.push(reading)
    }
    for (const { replica, readings: group } of groups.values()) this.open(route, replica, group)
    this.armHome()
  }

  private open(route: TopicRoute, replica: Replica | undefined, group: Reading<P>[]): void {
    let all = 0
    for (const { state } of this.readings.values()) if (!state.paused) all++
    const share = Math.floor((this.settings.prefetchBytes * group.length) / Math.max(1, all))
    let queuedBytes = 0
    for (const reading of group) queuedBytes += reading.queuedBytes
    const places = group.map(({ state }) => ({
      partition: state.partition,
      offset: state.fetchOffset,
    }))
    const byPartition = new Map(group.map((reading) => [reading.state.partition, reading]))
    const mine = (partition: number): Reading<P> | undefined => {
      const reading = byPartition.get(partition)
      return reading?.session === session ? reading : undefined
    }
    const connection = this.cluster.at(replica?.address)
    const session = new Session(connection, route.view.name, places, Math.max(1, share), {
      opened: (partition) => this.opened(mine(partition)),
      pushed: (partition, data) => this.pushed(mine(partition), data),
      partitionFailed: (partition, error) => this.failed(mine(partition), connection.name, error),
      lost: (error) => {
        this.sessions.delete(session)
        for (const { partition } of places) this.failed(mine(partition), connection.name, error)
      },
    })
    this.sessions.add(session)
    for (const reading of group) {
      reading.session = session
      reading.openedAtMs = Infinity
      if (reading.trouble !== undefined) reading.trouble.resting = false
    }
    const { requestTimeoutMs } = this.cluster.settings
    session.open(route.view.topicId, this.settings.keySpan, queuedBytes, requestTimeoutMs)
  }

  private opened(reading: Reading<P> | undefined): void {
    if (reading !== undefined) reading.openedAtMs = this.nowMs
  }

  private pushed(reading: Reading<P> | undefined, data: ConsumeData): void {
    // A partition never goes back, whatever a broker thinks of where it stands.
    if (reading === undefined || data.nextOffset < reading.state.fetchOffset) return
    reading.queuedBytes += data.batches.length
    this.well(reading)
    reading.hops = 0
    this.events.pushed(reading.state, data)
  }

  private well(reading: Reading<P>): void {
    if (reading.trouble === undefined) return
    reading.trouble = undefined
    this.patience.well(reading.state.partition)
  }

  private failed(reading: Reading<P> | undefined, from: string, error: EastGuardError): void {
    if (reading === undefined || this.closed) return
    const { nowMs } = this
    reading.session?.leave(reading.state.partition)
    reading.session = undefined
    if (nowMs - reading.openedAtMs >= STEADY_MS) {
      this.well(reading)
      reading.hops = 0
    }
    if (error.code === 'OFFSET_OUT_OF_RANGE') {
      this.checkRange(reading, from)
      return
    }
    const sentTo = this.route === undefined ? [] : sentBy(this.route, reading, from, error)
    if (sentTo.length > 0) reading.sentTo = sentTo
    else reading.avoided.add(from, nowMs + AVOID_MS)
    if (sentTo.length === 0 || error.code === 'NOT_LEADER') this.refresh()
    this.goOn(reading, error)
  }

  /** To another replica at once where there is one; else after a pause. */
  private goOn(reading: Reading<P>, error: EastGuardError): void {
    const other = this.route !== undefined && hasOther(this.route, reading, this.nowMs)
    // Another copy may be whole, and a broker that is behind does not know a new topic yet: looking it up tells.
    const elsewhere = error.code === 'DAMAGED' ? other : BEHIND.has(error.code)
    if (!error.retriable && !elsewhere) {
      this.events.failed(error)
      return
    }
    reading.hops++
    if (other && reading.hops <= HOPS_AT_ONCE && !BEHIND.has(error.code)) this.move(reading)
    else this.rest(reading, error)
  }

  /** Those that leave a broker together begin at the next one together. */
  private move(reading: Reading<P>): void {
    this.moving.add(reading)
    if (this.moveQueued) return
    this.moveQueued = true
    queueMicrotask(() => {
      this.moveQueued = false
      const { moving } = this
      this.moving = new Set()
      this.read(moving)
    })
  }

  private rest(reading: Reading<P>, error: EastGuardError): void {
    if (this.closed) return
    const { nowMs } = this
    const { random } = this.cluster.ports
    const { backoffMs, backoffMaxMs } = this.cluster.settings
    const trouble = (reading.trouble ??= {
      sinceMs: nowMs,
      backoff: new Backoff(random, backoffMs, backoffMaxMs),
      notBeforeMs: 0,
      resting: false,
    })
    if (nowMs - trouble.sinceMs >= this.settings.unavailableTimeoutMs) {
      this.events.failed(error)
      return
    }
    this.patience.failed(reading.state.partition, error)
    trouble.notBeforeMs = nowMs + trouble.backoff.next()
    trouble.resting = true
    reading.hops = 0
    reading.avoided.clear()
    if (this.route !== undefined) this.cluster.forgetRoute(this.route)
    this.armRetry()
  }

  private armRetry(): void {
    let nextMs = Infinity
    for (const { trouble } of this.readings.values()) {
      if (trouble?.resting === true) nextMs = Math.min(nextMs, trouble.notBeforeMs)
    }
    this.retryTimer?.cancel()
    this.retryTimer = undefined
    if (nextMs === Infinity) return
    const inMs = Math.max(0, nextMs - this.nowMs)
    this.retryTimer = this.cluster.ports.clock.after(inMs, () => this.retry())
  }

  private retry(): void {
    this.retryTimer = undefined
    const { nowMs } = this
    const due: Reading<P>[] = []
    for (const reading of this.readings.values()) {
      const { trouble } = reading
      if (trouble?.resting !== true || trouble.notBeforeMs > nowMs) continue
      trouble.resting = false
      due.push(reading)
    }
    this.armRetry()
    if (due.length > 0) this.lookUp(due)
  }

  /** Reads them again by a route that holds now. */
  private lookUp(readings: readonly Reading<P>[]): void {
    const opening = this.openings
    const { nowMs } = this
    let leftMs = this.cluster.settings.requestTimeoutMs
    for (const { trouble } of readings) {
      const pastMs = nowMs - (trouble?.sinceMs ?? nowMs)
      leftMs = Math.min(leftMs, this.settings.unavailableTimeoutMs - pastMs)
    }
    this.routed(Math.max(1, leftMs)).then(
      () => {
        if (opening === this.openings) this.read(readings)
      },
      (error: unknown) => {
        if (opening !== this.openings) return
        const told = asError(error)
        if (told.retriable) for (const reading of readings) this.rest(reading, told)
        else this.events.failed(told)
      },
    )
  }

  private async routed(ms: number): Promise<void> {
    const { topic } = this.settings
    const route = await this.cluster.route(topic, deadlineIn(this.cluster.ports.clock, ms))
    if (this.route !== undefined && route.view.topicId !== this.route.view.topicId) {
      const message = `the topic '${topic}' was deleted and made anew`
      throw new EastGuardError('UNKNOWN_TOPIC', message)
    }
    this.route = route
  }

  /** The route is out of date, or may be: the next choice should know better. */
  private refresh(): void {
    if (this.route !== undefined) this.cluster.forgetRoute(this.route)
    this.routed(this.cluster.settings.requestTimeoutMs).catch((error: unknown) => {
      const told = asError(error)
      if (!told.retriable && !this.closed) this.events.failed(told)
    })
  }

  private checkRange(reading: Reading<P>, from: string): void {
    const { route, openings } = this
    if (route === undefined) return
    const { state } = reading
    const { fetchOffset, epoch } = state
    const { clock } = this.cluster.ports
    const deadline = deadlineIn(clock, this.cluster.settings.requestTimeoutMs)
    const stands = (): boolean =>
      !this.closed && openings === this.openings && epoch === state.epoch
    logRange(this.cluster, route, state.partition, deadline).then(
      (range) => {
        if (!stands()) return
        const { earliest, latest } = range
        if (fetchOffset < earliest || fetchOffset > latest) {
          this.events.outOfRange(state, range)
          return
        }
        reading.avoided.add(from, this.nowMs + AVOID_MS)
        const message = `${from} does not know of offset ${fetchOffset} yet`
        this.goOn(reading, new EastGuardError('NOT_REPLICA', message))
      },
      (error: unknown) => {
        if (stands()) this.goOn(reading, asError(error))
      },
    )
  }

  private armHome(): void {
    if (this.homeTimer !== undefined || this.closed) return
    if (![...this.readings.values()].some(({ away }) => away)) return
    this.homeTimer = this.cluster.ports.clock.after(HOME_MS, () => {
      this.homeTimer = undefined
      this.goHome()
    })
  }

  /** Partitions that had to leave the nearest replica try it again, and with them all that share a stream with them. */
  private goHome(): void {
    const opening = this.openings
    if (this.route !== undefined) this.cluster.forgetRoute(this.route)
    this.routed(this.cluster.settings.requestTimeoutMs).then(
      () => {
        const { route, nowMs } = this
        if (opening !== this.openings || route === undefined) return
        const left = new Set<Session>()
        for (const reading of this.readings.values()) {
          const { session } = reading
          if (session === undefined || !reading.away) continue
          if (session.name !== home(route, reading, this.cluster.near, nowMs)) left.add(session)
        }
        for (const session of left) session.close()
        const moved: Reading<P>[] = []
        for (const reading of this.readings.values()) {
          if (reading.session === undefined || !left.has(reading.session)) continue
          reading.session = undefined
          reading.sentTo = []
          moved.push(reading)
        }
        for (const session of left) this.sessions.delete(session)
        this.read(moved)
      },
      // It is well read where it is; another time.
      () => this.armHome(),
    )
  }
}

/** What a broker says that has not heard of a topic or partition yet, as well as one that knows that it is gone. */
const BEHIND: ReadonlySet<string> = new Set(['UNKNOWN_TOPIC', 'UNKNOWN_PARTITION'])

export function asError(error: unknown): EastGuardError {
  if (error instanceof EastGuardError) return error
  return new EastGuardError('INTERNAL', `the consumer failed: ${String(error)}`, { cause: error })
}

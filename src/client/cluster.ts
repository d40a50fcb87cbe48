// The brokers that this client knows, and who leads what. Callers ask for "any broker" or for a topic's route; both are
// found through the seeds, kept, and looked up again when a broker's answer shows that they are out of date.
//
// Retrying lives here for everything that is not produce or consume: those two know better what a retry may do.

import { Backoff } from '../base/backoff.ts'
import { EastGuardError, type ErrorCode } from '../base/errors.ts'
import type { BrokerView, TopicView } from '../model/metadata.ts'
import { redirectIn } from '../model/redirect.ts'
import type { Address } from '../ports/streams.ts'
import { describeCluster } from '../wire/native/describe-cluster.ts'
import { describeTopics } from '../wire/native/describe-topics.ts'
import type { Message } from '../wire/native/message.ts'
import { BrokerConnection, type ClusterIdentity, type ConnectionSettings } from './connection.ts'
import type { ClientPorts } from './ports.ts'
import { addressName, routeOf, type TopicRoute } from './route.ts'
import { aborted, type Deadline, pause, within } from './timing.ts'

export interface ClusterSettings extends ConnectionSettings {
  readonly seeds: readonly Address[]
  readonly requestTimeoutMs: number
  /** Where the client itself stands; absent: not known. */
  readonly near?: Nearness
}

/** Where somebody stands; empty: not known. */
export interface Nearness {
  readonly hostLabel: string
  readonly rackLabel: string
}

const NOWHERE: Nearness = { hostLabel: '', rackLabel: '' }

interface KnownRoute {
  readonly route: TopicRoute
  /** A broker's answer shows that it is out of date; kept to tell a still older one by. */
  stale: boolean
  /** Whoever leads by it says that it does not. */
  denied: boolean
}

/** One look-up for all who wait for the topic, and what keeps it waiting. */
interface Lookup {
  readonly found: Promise<TopicRoute>
  readonly trouble: { last: EastGuardError | undefined }
}

/** With other seeds to ask, a broker has so long to say hello. */
const SEED_HELLO_MS = 1000
/** With other seeds to ask, an attempt may take half of the time that is left, unless that is less than this. */
const SEED_ATTEMPT_MS_LEAST = 2000
/** A route older than this is looked up again before it is used: partitions may have been added. */
const ROUTE_AGE_MS_MAX = 60_000

/** It cannot be reached, or cannot reach the others: another one may. */
const ASK_ANOTHER: ReadonlySet<ErrorCode> = new Set([
  'CONNECTION_FAILED',
  'TIMEOUT',
  'METADATA_UNAVAILABLE',
  'NOT_READY',
])

export class Cluster {
  readonly ports: ClientPorts
  readonly settings: ClusterSettings
  private readonly identity: ClusterIdentity = { clusterId: undefined }
  private readonly connections = new Map<string, BrokerConnection>()
  private readonly routes = new Map<string, KnownRoute>()
  private readonly lookups = new Map<string, Lookup>()
  /** Brokers that others told of: asked when the seeds do not answer. */
  private found: readonly Address[] = []
  private seed = 0
  private closed = false

  constructor(ports: ClientPorts, settings: ClusterSettings) {
    this.ports = ports
    this.settings = settings
  }

  get near(): Nearness {
    return this.settings.near ?? NOWHERE
  }

  /** The broker at an address; without one, whichever last worked of those that anything can be asked of. */
  at(address: Address | undefined): BrokerConnection {
    const known = address ?? this.seedAddress()
    const name = addressName(known)
    let connection = this.connections.get(name)
    if (connection === undefined) {
      connection = new BrokerConnection(known, this.ports, this.settings, this.identity)
      if (this.closed) connection.close()
      this.connections.set(name, connection)
    }
    return connection
  }

  /** Asks any broker, again and again while that may help, until the deadline. */
  async call<Request, Response>(
    what: string,
    message: Message<Request, Response>,
    request: Request,
    deadline: Deadline,
    address?: Address,
    onRetry?: (error: EastGuardError) => void,
  ): Promise<Response> {
    const { clock, random } = this.ports
    const backoff = new Backoff(random, this.settings.backoffMs, this.settings.backoffMaxMs)
    let to = address
    let last: EastGuardError | undefined
    for (;;) {
      if (deadline.signal?.aborted === true) throw aborted(deadline.signal, what)
      const leftMs = deadline.atMs - clock.monotonic()
      const asked = this.seed
      try {
        const attemptMs = this.attemptMs(to, leftMs)
        return await this.at(to).request(message, request, Math.max(1, attemptMs), deadline.signal)
      } catch (error) {
        if (!(error instanceof EastGuardError) || !error.retriable) throw error
        if (error.code === 'NOT_LEADER') to = redirectIn(error).brokers[0]?.address ?? to
        if (ASK_ANOTHER.has(error.code)) {
          if (to === undefined) this.nextSeed(asked)
          to = undefined
        }
        onRetry?.(error)
        // That the time is over says less than what went wrong before.
        if (error.code !== 'TIMEOUT' || last === undefined) last = error
        const restMs = backoff.next()
        if (clock.monotonic() + restMs >= deadline.atMs) throw outOfTime(what, last)
        await pause(clock, restMs, deadline.signal)
      }
    }
  }

  /** The topic by name, looked up when it is not known, old, or `newerThan` what is known. Rejects with UNKNOWN_TOPIC. */
  async route(topic: string, deadline: Deadline, newerThan?: TopicRoute): Promise<TopicRoute> {
    const known = this.routeIfKnown(topic)
    if (known !== undefined && known !== newerThan) return known
    const what = `looking up topic '${topic}'`
    const lookup = this.lookUp(topic)
    try {
      return await within(this.ports.clock, deadline, what, lookup.found)
    } catch (error) {
      const late = error instanceof EastGuardError && error.code === 'TIMEOUT'
      const { last } = lookup.trouble
      throw late && last !== undefined ? outOfTime(what, last) : error
    }
  }

  /** The route when it is at hand and fresh. */
  routeIfKnown(topic: string): TopicRoute | undefined {
    const known = this.routes.get(topic)
    if (known === undefined || known.stale) return undefined
    const { route } = known
    return this.ports.clock.monotonic() - route.loadedAtMs < ROUTE_AGE_MS_MAX ? route : undefined
  }

  /** The newest comes last, so those that are too old to be used stand first: topics come and go. */
  private keepRoute(topic: string, route: TopicRoute): void {
    this.routes.delete(topic)
    for (const [name, known] of this.routes) {
      if (route.loadedAtMs - known.route.loadedAtMs < ROUTE_AGE_MS_MAX) break
      this.routes.delete(name)
    }
    this.routes.set(topic, { route, stale: false, denied: false })
  }

  /** A broker's answer shows that this route is out of date. */
  forgetRoute(route: TopicRoute): void {
    const known = this.routes.get(route.view.name)
    if (known?.route === route) known.stale = true
  }

  /** Whoever leads by this route says that it does not: a broker that tells the same again is to be asked no more. */
  denyRoute(route: TopicRoute): void {
    const known = this.routes.get(route.view.name)
    if (known?.route === route) known.denied = true
  }

  /** The topic was made, deleted or changed: what was known of it is out of date. */
  forgetTopic(name: string): void {
    this.routes.delete(name)
  }

  /** Looked up now: where a stale route would cost more than a lookup, as a topic may have been made anew by others. */
  freshRoute(topic: string, deadline: Deadline): Promise<TopicRoute> {
    const known = this.routes.get(topic)
    if (known !== undefined) known.stale = true
    return this.route(topic, deadline)
  }

  close(): void {
    this.closed = true
    for (const connection of this.connections.values()) connection.close()
  }

  private seedAddress(): Address {
    const { seeds } = this.settings
    const at = this.seed % (seeds.length + this.found.length)
    return (at < seeds.length ? seeds[at] : this.found[at - seeds.length]) as Address
  }

  private remember(brokers: readonly BrokerView[]): void {
    const seeds = new Set(this.settings.seeds.map(addressName))
    this.found = brokers
      .filter(({ state }) => state === 'alive')
      .map(({ host, clientPort: port }) => ({ host, port }))
      .filter((address) => !seeds.has(addressName(address)))
  }

  /** A broker that is stuck, or behind a network that swallows all, must not take all the time that the next could use. */
  private attemptMs(to: Address | undefined, leftMs: number): number {
    if (this.settings.seeds.length + this.found.length < 2) return leftMs
    if (!this.at(to).ready) return Math.min(leftMs, SEED_HELLO_MS)
    return leftMs / 2 < SEED_ATTEMPT_MS_LEAST ? leftMs : leftMs / 2
  }

  private nextSeed(asked: number): void {
    // Only the first of many failures moves on, or two seeds would be passed over for one.
    if (this.seed === asked) this.seed++
  }

  /** A broker that is cut off from the others tells what it last knew, and for as long as it is: what was seen since is newer. */
  private newest(view: TopicView, asked: number): TopicView {
    const before = this.routes.get(view.name)
    const known = before?.route.view
    if (before === undefined || known?.topicId !== view.topicId) return view
    if (before.denied && view.version <= known.version) this.nextSeed(asked)
    return view.version < known.version ? known : view
  }

  private lookUp(topic: string): Lookup {
    const running = this.lookups.get(topic)
    if (running !== undefined) return running
    const trouble: Lookup['trouble'] = { last: undefined }
    const note = (error: EastGuardError): void => {
      trouble.last = error
    }
    const found = this.load(topic, note).finally(() => this.lookups.delete(topic))
    const lookup = { found, trouble }
    this.lookups.set(topic, lookup)
    return lookup
  }

  private async load(topic: string, onRetry: (error: EastGuardError) => void): Promise<TopicRoute> {
    const { clock } = this.ports
    const deadline: Deadline = {
      atMs: clock.monotonic() + this.settings.requestTimeoutMs,
      signal: undefined,
    }
    const what = `looking up topic '${topic}'`
    const asked = this.seed
    const [topics, cluster] = await Promise.all([
      this.call(
        what,
        describeTopics,
        { names: [topic], brief: true },
        deadline,
        undefined,
        onRetry,
      ),
      this.call(what, describeCluster, {}, deadline),
    ])
    const description = topics.topics[0]
    if (description === undefined || 'error' in description) {
      this.routes.delete(topic)
      throw description === undefined
        ? new EastGuardError('UNKNOWN_TOPIC', `there is no topic '${topic}'`)
        : new EastGuardError(description.error, description.message)
    }
    const view = description.topic
    this.remember(cluster.brokers)
    const route = routeOf(this.newest(view, asked), cluster.brokers, clock.monotonic())
    this.keepRoute(topic, route)
    return route
  }
}

export function outOfTime(what: string, last: EastGuardError): EastGuardError {
  if (last.code === 'TIMEOUT') return last
  // The last failure says more than "too late" does, and it is retriable for whoever has more time.
  return new EastGuardError(
    last.code,
    `${what} failed for as long as was allowed: ${last.message}`,
    {
      cause: last,
      hint: last.hint,
      detail: last.detail,
    },
  )
}

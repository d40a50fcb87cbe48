// All that one knows for all that the other knows, over a stream: to join, and now and then to find what gossip has missed.
//
//   joining   several seeds, and peers of an earlier start, at a time, each with a time-out, again and again until one has answered
//   joined    every syncEveryMs with some member; with one that came back from the dead, and with a stranger, soon;
//             and now and then with a seed or peer of an earlier start at whose address no member is known to live: there may
//             be the rest of the cluster, or somebody who has lost its disk and founded another one
//
// Seeds that turn out to be this broker itself are dropped.

import { type Address, sameAddress } from '../../base/address.ts'
import type { NodeId } from '../../model/ids.ts'
import type {
  NamedCluster,
  ShardHint,
  SyncAnswer,
  SyncRequest,
  SyncState,
  Update,
} from '../../model/swim.ts'
import { type SwimHost, shuffled } from './host.ts'
import { isLive } from './order.ts'

const AT_ONCE_MAX = 3
/** Addresses that a sync is wanted with. */
const WANTED_MAX = 16
/** A stranger's own news is probably on its way. */
const STRANGER_WAIT_MS = 1000
const RETURNS_APART_MS = 2000
const JOIN_RETRY_MIN_MS = 500
const JOIN_RETRY_MAX_MS = 10_000

interface Wanted {
  readonly to: Address
  readonly at: number
  /** Not when it is known by then, in this life or a later one. */
  readonly unlessKnown: { readonly node: NodeId; readonly boot: number } | undefined
}

interface UnderWay {
  readonly to: Address
  ends: number
}

export class Syncing {
  private readonly host: SwimHost
  private seeds: Address[] = []
  private peers: readonly Address[] = []
  private underWay: UnderWay[] = []
  private wanted: Wanted[] = []
  /** Seeds that have not been tried in this round of joining. */
  private round: Address[] = []
  private nextRound = Number.POSITIVE_INFINITY
  private roundWaitMs = JOIN_RETRY_MIN_MS
  private lastReturn = Number.NEGATIVE_INFINITY
  private nextSync: number
  private nextSeed: number

  constructor(host: SwimHost) {
    const { syncEveryMs, seedRetryMs } = host.options.settings
    this.host = host
    this.nextSync = host.now + host.below(syncEveryMs)
    this.nextSeed = host.now + seedRetryMs
  }

  join(seeds: readonly Address[], peers: readonly Address[]): void {
    this.seeds = shuffled(this.host, seeds)
    this.peers = peers
    this.nextRound = this.host.now
    this.tick()
  }

  // Time.

  tick(): void {
    const { host } = this
    const { now } = host
    for (const { to, ends } of this.underWay) if (now >= ends) this.failed(to)
    if (!host.joined) this.tickJoin()
    else {
      this.tickPeriodic()
      this.wanted = this.wanted.filter(({ to, at, unlessKnown }) => {
        if (now < at) return true
        if (this.knows(unlessKnown)) return false
        if (this.underWay.length >= AT_ONCE_MAX) return true
        this.begin(to)
        return false
      })
    }
  }

  get nextTick(): number {
    let next = Number.POSITIVE_INFINITY
    for (const { ends } of this.underWay) next = Math.min(next, ends)
    if (!this.host.joined) return this.underWay.length > 0 ? next : this.nextRound
    if (this.underWay.length < AT_ONCE_MAX) {
      for (const { at } of this.wanted) next = Math.min(next, at)
    }
    return Math.min(next, this.nextSync, this.nextSeed)
  }

  shift(ms: number): void {
    for (const one of this.underWay) one.ends += ms
  }

  private tickJoin(): void {
    const { now } = this.host
    if (this.round.length === 0 && this.underWay.length === 0 && now >= this.nextRound) {
      this.round = shuffled(this.host, this.candidates())
      this.nextRound = now + this.roundWaitMs
      this.roundWaitMs = Math.min(JOIN_RETRY_MAX_MS, 2 * this.roundWaitMs)
    }
    while (this.round.length > 0 && this.underWay.length < AT_ONCE_MAX) {
      this.begin(this.round.pop() as Address)
    }
  }

  private tickPeriodic(): void {
    const { host } = this
    const { syncEveryMs, seedRetryMs } = host.options.settings
    if (host.now >= this.nextSync) {
      this.nextSync = host.now + syncEveryMs * (0.75 + host.options.chance() / 2)
      const live = host.table.live()
      const some = live[host.below(live.length)]
      if (some !== undefined) this.begin(some.member.profile.cluster)
    }
    if (host.now >= this.nextSeed) {
      this.nextSeed = host.now + seedRetryMs * (0.75 + host.options.chance() / 2)
      const live = host.table.live()
      const empty = this.candidates().filter(
        (seed) => !live.some(({ member }) => sameAddress(member.profile.cluster, seed)),
      )
      const some = empty[host.below(empty.length)]
      if (some !== undefined) this.begin(some)
    }
  }

  // What asks for one.

  /** It is back: the two sides know different things. */
  returned(to: Address): void {
    const { now } = this.host
    // Behind the first there are often others: one sync tells of all of them.
    if (now - this.lastReturn < RETURNS_APART_MS) return
    this.lastReturn = now
    this.want({ to, at: now, unlessKnown: undefined })
  }

  stranger(to: Address, node: NodeId, boot: number): void {
    const at = this.host.now + STRANGER_WAIT_MS
    this.want({ to, at, unlessKnown: { node, boot } })
  }

  private want(wanted: Wanted): void {
    if (this.wanted.some(({ to }) => sameAddress(to, wanted.to))) return
    if (this.wanted.length >= WANTED_MAX) this.host.counters.dropped++
    else this.wanted.push(wanted)
  }

  private knows(unless: Wanted['unlessKnown']): boolean {
    if (unless === undefined) return false
    const member = this.host.table.get(unless.node)?.member
    return member !== undefined && isLive(member.state) && member.boot >= unless.boot
  }

  private begin(to: Address): void {
    const { host } = this
    if (this.underWay.some((one) => sameAddress(one.to, to))) return
    if (this.underWay.length >= AT_ONCE_MAX) return
    host.counters.syncs++
    this.underWay.push({ to, ends: host.now + host.options.settings.syncTimeoutMs })
    const request: SyncRequest = { kind: 'sync', cluster: host.namedCluster, ...this.state() }
    host.sync(to, request)
  }

  // Outcomes.

  /** False: nobody waits for it any more. */
  ended(to: Address): boolean {
    const before = this.underWay.length
    this.underWay = this.underWay.filter((one) => !sameAddress(one.to, to))
    return this.underWay.length < before
  }

  failed(to: Address): void {
    if (this.ended(to)) this.host.counters.syncsFailed++
  }

  wasItself(to: Address): void {
    this.seeds = this.seeds.filter((seed) => !sameAddress(seed, to))
    this.peers = this.peers.filter((peer) => !sameAddress(peer, to))
  }

  get hasCandidates(): boolean {
    return this.candidates().length > 0
  }

  private candidates(): Address[] {
    const others = this.peers.filter((peer) => !this.seeds.some((seed) => sameAddress(seed, peer)))
    return [...this.seeds, ...others]
  }

  answer(cluster: NamedCluster): SyncAnswer {
    return { kind: 'sync-answer', cluster, ...this.state() }
  }

  private state(): SyncState {
    const { table, hints } = this.host
    const { self } = table
    const updates: Update[] = [{ member: self, suspectedBy: [] }]
    for (const { member, suspectedBy } of table.all()) updates.push({ member, suspectedBy })
    const known: ShardHint[] = [...hints.values()]
    return { from: self.node, boot: self.boot, nonce: self.nonce, updates, hints: known }
  }
}

// Brings the groups of the shards that this broker leads to the members that the ring gives them, and leadership to where it
// should be. It acts only on a view of the brokers that has not moved for a while, and begins one step per shard at a time.
//
//   who is there (SWIM), who is drained (shard 0) ─> the ring ─> for each shard led here: the next step ─> Shards.change
//
// A broker that disappears keeps its place for a time: most come back, and moving what it held costs more than waiting.

import type { NodeRecord } from '../../core/metadata/types.ts'
import { type ShardStep, shardSteps } from '../../core/placement/shard-step.ts'
import type { NodeId } from '../../model/ids.ts'
import { type RingNode, shardPlan } from '../../model/ring.ts'
import type { Clock, Timer } from '../../ports/clock.ts'
import type { Log } from '../../ports/log.ts'
import type { Shards } from './shards.ts'

const TICK_MS = 500
/** Steps begun in one tick: each may send a snapshot. */
const STEPS_MAX = 32
/**
 * Between two hand-overs of a shard from here: twice as long each time, up to the longest, and from the beginning when there was none for longer.
 * Brokers that see the others differently would hand it to and fro, and each time nothing can be proposed for a moment.
 */
const HAND_OVER_PAUSE_MS = 2000
const HAND_OVER_PAUSE_MAX_MS = 10_000

/** Who is there, as far as that is known. */
export interface BrokerSight {
  /** Since when nothing has changed, by the broker's clock; undefined while it changes. */
  readonly stableSince: number | undefined
  readonly brokers: readonly RingNode[]
}

export interface KeeperOptions {
  readonly clock: Clock
  readonly log: Log
  readonly shards: Pick<Shards, 'count' | 'view' | 'change' | 'handOver' | 'fresh'>
  readonly nodeId: NodeId
  /** How many brokers should hold each shard. */
  readonly copies: number
  readonly vnodes: number
  /** A view that is younger is not acted on. */
  readonly stableMs: number
  /** Who has been gone for longer loses its place. */
  readonly replaceMs: number
  sight(): BrokerSight
  /** From shard 0. */
  nodes(): ReadonlyMap<NodeId, NodeRecord>
}

export class Keeper {
  private readonly options: KeeperOptions
  private timer: Timer | undefined
  /** Who was there, and since when it is not; undefined: it is. */
  private readonly seen = new Map<NodeId, { broker: RingNode; goneSince: number | undefined }>()
  /** By shard: the last hand-over from here, and how long there is none after it. */
  private readonly handed = new Map<number, { readonly at: number; readonly pauseMs: number }>()
  private readonly startedAt: number
  /** Who belongs to the cluster is known here, as of some time since the start. */
  private knows: 'no' | 'asks' | 'yes' = 'no'
  private planned: readonly (readonly NodeId[])[] = []
  private plannedOf = ''
  private stopped = false

  constructor(options: KeeperOptions) {
    this.options = options
    this.startedAt = options.clock.monotonic()
    this.arm()
  }

  stop(): void {
    this.stopped = true
    this.timer?.cancel()
  }

  private arm(): void {
    this.timer = this.options.clock.after(TICK_MS, () => {
      if (this.stopped) return
      this.arm()
      this.tick()
    })
  }

  private tick(): void {
    const { clock, stableMs, shards } = this.options
    const now = clock.monotonic()
    const { stableSince, brokers } = this.options.sight()
    this.look(brokers, now)
    if (stableSince === undefined || now - stableSince < stableMs) return
    if (this.knows !== 'yes' || this.mayStillCome(now)) return this.ask()
    const plan = this.plan(now)
    const alive = new Set(brokers.map(({ node }) => node))
    let begun = 0
    for (let shard = 0; shard < shards.count && begun < STEPS_MAX; shard++) {
      if (this.step(shard, plan[shard] ?? [], alive)) begun++
    }
  }

  private ask(): void {
    if (this.knows !== 'no') return
    this.knows = 'asks'
    this.options.shards.fresh(0).then(
      () => {
        this.knows = 'yes'
      },
      () => {
        this.knows = 'no'
      },
    )
  }

  /** After a start of all brokers the first would take the last for gone: whoever belongs here is waited for as if seen. */
  private mayStillCome(now: number): boolean {
    if (now - this.startedAt > this.options.replaceMs) return false
    for (const [node, { role }] of this.options.nodes()) {
      if (role === 'member' && !this.seen.has(node)) return true
    }
    return false
  }

  private look(brokers: readonly RingNode[], now: number): void {
    const there = new Set(brokers.map(({ node }) => node))
    for (const broker of brokers) this.seen.set(broker.node, { broker, goneSince: undefined })
    for (const [node, one] of this.seen) {
      if (there.has(node)) continue
      one.goneSince ??= now
      if (now - one.goneSince > this.options.replaceMs) this.seen.delete(node)
    }
  }

  private plan(now: number): readonly (readonly NodeId[])[] {
    const { shards, copies, vnodes, replaceMs } = this.options
    const nodes = this.options.nodes()
    const ring = [...this.seen.values()]
      .filter(({ broker, goneSince }) => {
        const late = goneSince !== undefined && now - goneSince > replaceMs
        return !late && nodes.get(broker.node)?.role === 'member'
      })
      .map(({ broker }) => broker)
      .sort((a, b) => (a.node < b.node ? -1 : 1))
    const of = ring.map(({ node, hostLabel, rackLabel }) => `${node}/${hostLabel}/${rackLabel}`)
    const name = of.join(' ')
    if (name === this.plannedOf) return this.planned
    this.plannedOf = name
    this.planned = shardPlan(ring, shards.count, copies, vnodes)
    this.options.log.info('the brokers that hold metadata have changed', { brokers: ring.length })
    return this.planned
  }

  private step(shard: number, wanted: readonly NodeId[], alive: ReadonlySet<NodeId>): boolean {
    const { shards, nodeId, copies } = this.options
    const view = shards.view(shard)
    if (view?.role !== 'leader' || !view.settled || wanted.length === 0) return false
    const nodes = this.options.nodes()
    const steps = shardSteps({
      members: view.members,
      self: nodeId,
      wanted,
      copies,
      alive: (node) => alive.has(node),
      gone: (node) => (nodes.get(node)?.role ?? 'member') !== 'member',
    })
    return steps.some((step) => this.begin(shard, step))
  }

  private begin(shard: number, step: ShardStep): boolean {
    const { shards } = this.options
    const { kind, node } = step
    if (kind === 'hand-over' && this.pauses(shard)) return false
    const refusal =
      kind === 'hand-over' ? shards.handOver(shard, node) : shards.change(shard, { kind, node })
    if (refusal !== undefined) return false
    if (kind === 'hand-over') this.noteHandOver(shard)
    this.options.log.debug('a shard changes its members', { shard, step: kind, node })
    return true
  }

  private pauses(shard: number): boolean {
    const last = this.handed.get(shard)
    return last !== undefined && this.options.clock.monotonic() < last.at + last.pauseMs
  }

  private noteHandOver(shard: number): void {
    const at = this.options.clock.monotonic()
    const last = this.handed.get(shard)
    const again = last !== undefined && at - last.at < 2 * HAND_OVER_PAUSE_MAX_MS
    const pauseMs = again ? Math.min(2 * last.pauseMs, HAND_OVER_PAUSE_MAX_MS) : HAND_OVER_PAUSE_MS
    this.handed.set(shard, { at, pauseMs })
  }
}

// Looks at every shard four times a second, from outside: who keeps it, who leads it, and whether the step that its members
// have just taken was one that they could afford. What is not allowed at any moment is found here.
//
//   a step without a quorum      the new voters are mostly brokers that have been gone for long
//   a promotion before its time  a new voter has not got what had been committed long before
//   a shard without a leader     for longer than LEADERLESS_MS, though a majority of its voters is up, at ease and connected

import type { ShardView } from '../../broker/shards/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Machine, Watcher } from '../machine.ts'
import type { World } from '../world.ts'

const TICK_MS = 250
/** A broker that was there so lately may be taken to be there by the others. */
const GONE_MS = 25_000
const LEADERLESS_MS = 20_000
/** What was committed so long ago every new voter has. */
const SETTLED_MS = 8000
/** Slower than this a disk is in trouble. */
const CALM_LATENCY_MS = 1

export interface Kept {
  /** In force, whether or not they have committed. */
  readonly view: ShardView
  readonly leader: NodeId
  readonly atMs: number
}

interface Shard {
  kept: Kept | undefined
  led: boolean
  /** Since when it should have a leader and has none. */
  missingSince: number | undefined
  /** The leader's commit at each look, of the last SETTLED_MS. */
  commits: { readonly atMs: number; readonly commit: number }[]
  /** How often its voters have changed. */
  moves: number
}

interface Promotion {
  readonly number: number
  readonly node: NodeId
  /** What had been committed long before. */
  readonly settled: number
  /** The look before it. */
  readonly beforeMs: number
}

export interface WatchOptions {
  readonly world: World
  /** Of brokers of the cluster. */
  readonly machines: () => readonly Machine[]
  readonly shards: number
  readonly watcher: Watcher
  readonly linksAreBad: () => boolean
}

export class Watch {
  private readonly options: WatchOptions
  private readonly shards: readonly Shard[]
  /** At the last look. */
  private promoted: Promotion[] = []
  private readonly lastThere = new Map<NodeId, number>()
  /** The process that was there last, and since when. */
  private readonly lives = new Map<NodeId, { readonly shards: unknown; readonly sinceMs: number }>()

  constructor(options: WatchOptions) {
    this.options = options
    this.shards = Array.from({ length: options.shards }, () => ({
      kept: undefined,
      led: false,
      missingSince: undefined,
      commits: [],
      moves: 0,
    }))
  }

  start(): void {
    this.options.world.clock.after(TICK_MS, () => {
      this.look()
      this.start()
    })
  }

  /** As its leader sees it, of each shard; undefined while one has no leader, or its members are changing. */
  get settled(): readonly Kept[] | undefined {
    const all: Kept[] = []
    for (const { kept, led } of this.shards) {
      if (kept?.view.settled !== true || !led) return undefined
      all.push(kept)
    }
    return all
  }

  get moves(): number {
    return this.shards.reduce((sum, { moves }) => sum + moves, 0)
  }

  /** Of some shard it is a member, as far as is known. */
  holds(node: NodeId): boolean {
    return this.shards.some(({ kept }) => {
      const members = kept?.view.members
      return members !== undefined && [...members.voters, ...members.learners].includes(node)
    })
  }

  /** It is the only voter of some shard. */
  leadsAlone(node: NodeId): boolean {
    return this.shards.some(({ kept }) => kept?.view.members.voters.join() === node)
  }

  /** Without this broker, for ever, every shard goes on with a majority of the voters that it has. */
  affords(node: NodeId, lost: (other: NodeId) => boolean): boolean {
    return (
      this.settled?.every(({ view: { members } }) => {
        const { voters, learners } = members
        const left = voters.filter((other) => other !== node && !lost(other))
        return learners.length === 0 && left.length >= Math.floor(voters.length / 2) + 1
      }) === true
    )
  }

  private look(): void {
    const { world, machines } = this.options
    const now = world.clock.monotonic()
    for (const { shards, nodeId } of machines()) {
      if (nodeId === undefined || shards === undefined) continue
      this.lastThere.set(nodeId, now)
      if (this.lives.get(nodeId)?.shards !== shards)
        this.lives.set(nodeId, { shards, sinceMs: now })
    }
    const { promoted } = this
    this.promoted = []
    for (const promotion of promoted) this.judgePromotion(promotion)
    for (const [number, shard] of this.shards.entries()) {
      const kept = this.leaderOf(number, now)
      shard.led = kept !== undefined
      if (kept !== undefined) this.changed(number, shard, kept)
      this.judgeLeader(number, shard, now)
    }
  }

  /** Of several that take themselves for it the one of the newest term. */
  private leaderOf(number: number, atMs: number): Kept | undefined {
    let found: Kept | undefined
    for (const { shards, nodeId } of this.options.machines()) {
      const view = shards?.view(number)
      if (view?.role !== 'leader' || nodeId === undefined) continue
      if (found === undefined || view.term > found.view.term) found = { view, leader: nodeId, atMs }
    }
    return found
  }

  private changed(number: number, shard: Shard, kept: Kept): void {
    const before = shard.kept
    if (before !== undefined && kept.view.term < before.view.term) return
    shard.kept = kept
    const { commits } = shard
    commits.push({ atMs: kept.atMs, commit: kept.view.commit })
    while ((commits[0]?.atMs ?? kept.atMs) < kept.atMs - SETTLED_MS) commits.shift()
    if (before === undefined) return
    const { members } = kept.view
    const old = before.view.members
    if ([...members.voters].sort().join() === [...old.voters].sort().join()) return
    shard.moves++
    const { watcher } = this.options
    watcher.say(`shard ${number}: its voters are now ${this.names(members.voters)}`)
    this.judgeQuorum(number, kept)
    const settled = commits[0]?.commit ?? 0
    for (const node of members.voters) {
      if (old.learners.includes(node)) {
        this.promoted.push({ number, node, settled, beforeMs: before.atMs })
      }
    }
  }

  private judgeQuorum(number: number, { view: { members }, atMs }: Kept): void {
    const { voters } = members
    const there = voters.filter((node) => atMs - (this.lastThere.get(node) ?? -GONE_MS) < GONE_MS)
    if (there.length >= Math.floor(voters.length / 2) + 1) return
    const who = `${this.names(voters)}, of whom only ${this.names(there)} have been there lately`
    this.options.watcher.violation(`shard ${number} takes a step to the voters ${who}`)
  }

  /** One look later: it may have everything and not have been told yet that it is committed. */
  private judgePromotion({ number, node, settled, beforeMs }: Promotion): void {
    const machine = this.options.machines().find(({ nodeId }) => nodeId === node)
    // What one has that is down or paused cannot be seen, and one that has just started has yet to be told what is committed.
    if (machine?.shards === undefined || this.sinceMs(node) >= beforeMs) return
    const commit = machine.shards.view(number)?.commit ?? 0
    if (commit >= settled) return
    const has = `it has ${commit} entries of ${settled} that were committed long before`
    this.options.watcher.violation(`shard ${number} makes ${machine.host} a voter: ${has}`)
  }

  private sinceMs(node: NodeId): number {
    return this.lives.get(node)?.sinceMs ?? Number.POSITIVE_INFINITY
  }

  private judgeLeader(number: number, shard: Shard, now: number): void {
    const { kept, led } = shard
    const voters = kept?.view.members.voters ?? []
    const { machines, linksAreBad, watcher } = this.options
    const atEase = machines().filter(
      ({ shards, nodeId, latencyMs }) =>
        shards !== undefined &&
        latencyMs <= CALM_LATENCY_MS &&
        nodeId !== undefined &&
        voters.includes(nodeId),
    )
    const should = !linksAreBad() && atEase.length >= Math.floor(voters.length / 2) + 1
    if (led || kept === undefined || !should) {
      shard.missingSince = undefined
      return
    }
    shard.missingSince ??= now
    if (now - shard.missingSince <= LEADERLESS_MS) return
    shard.missingSince = undefined
    const who = `${atEase.map(({ host }) => host).join(' ')} of ${this.names(voters)}`
    watcher.violation(`shard ${number} has no leader for long, though ${who} are there`)
  }

  private names(nodes: readonly NodeId[]): string {
    const name = (node: NodeId): string =>
      this.options.machines().find(({ nodeId }) => nodeId === node)?.host ?? 'one that is no more'
    return nodes.map(name).join(' ')
  }
}

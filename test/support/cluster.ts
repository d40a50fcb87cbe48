// A cluster of brokers in processes of their own on this machine, formed by hand: the first founds it, the others join, and
// every shard gets all of them as voters and one of them, in turn, as leader.
//
//   found ── member ── ready ── id of the cluster
//                                 └─> join, all at once ── ready ──> each shard: add learners ── promote ── hand over
//
// What to do next follows from how the brokers say they stand, never from what was done: a step that was lost is seen to be
// missing.

import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Neighbour } from '../../src/broker/options.ts'
import type { ShardView } from '../../src/broker/shards/types.ts'
import { EastGuard } from '../../src/index.ts'
import { clusterId, type NodeId } from '../../src/model/ids.ts'
import { pause } from './broker-process.ts'
import { ClusterBroker } from './cluster-broker.ts'
import type { MembershipStep } from './cluster-commands.ts'

const LOOK_MS = 25

export interface ClusterOptions {
  readonly brokers: number
  /** Its data lies below this. */
  readonly parent: string
  /** Further flags of `eastguard server`. */
  readonly flags?: readonly string[]
  readonly nodeFlags?: readonly string[]
}

type Views = readonly (ShardView | null)[]

export class Cluster {
  readonly brokers: readonly ClusterBroker[]
  private readonly dir: string

  /** Resolves when all is settled; leaves nothing behind when it rejects. */
  static async form(options: ClusterOptions): Promise<Cluster> {
    const dir = await mkdtemp(join(options.parent, 'eastguard-cluster-'))
    const { flags = [], nodeFlags = [] } = options
    const brokers: ClusterBroker[] = []
    for (let i = 0; i < options.brokers; i++) {
      const dataDir = join(dir, `broker-${i + 1}`)
      brokers.push(await ClusterBroker.make({ dataDir, flags, nodeFlags }))
    }
    const cluster = new Cluster(dir, brokers)
    try {
      await cluster.join()
      await cluster.settle()
      return cluster
    } catch (error) {
      await cluster.close()
      throw error
    }
  }

  private constructor(dir: string, brokers: readonly ClusterBroker[]) {
    this.dir = dir
    this.brokers = brokers
  }

  get seeds(): readonly string[] {
    return this.brokers.map(({ address }) => `${address.host}:${address.port}`)
  }

  private async join(): Promise<void> {
    const [founder, ...others] = this.brokers
    if (founder === undefined) return
    await founder.start([])
    await founder.ready()
    const client = new EastGuard({ seeds: this.seeds.slice(0, 1) })
    const found = await client.admin().describeCluster()
    await client.close()
    await Promise.all(
      others.map((broker) => broker.start(this.neighbours, clusterId(found.clusterId))),
    )
    this.introduce()
    await Promise.all(others.map((broker) => broker.ready()))
  }

  private get neighbours(): readonly Neighbour[] {
    return this.brokers.flatMap(({ neighbour }) => (neighbour === undefined ? [] : [neighbour]))
  }

  /** Everybody knows everybody. */
  private introduce(): void {
    for (const broker of this.brokers) broker.tell(this.neighbours)
  }

  /** Again, on what it left; resolves when it takes part, before it is ready. */
  start(broker: ClusterBroker): Promise<void> {
    return broker.start(this.neighbours)
  }

  /** Until every shard has all brokers as voters and the leader that is its own, and all of them know it. */
  async settle(withinMs: number = 60_000): Promise<void> {
    const deadline = performance.now() + withinMs
    for (;;) {
      const open = await this.round()
      if (open === 0) return
      if (performance.now() > deadline) {
        throw new Error(`${open} shards were not settled within ${withinMs} ms`)
      }
      await pause(LOOK_MS)
    }
  }

  /** Begins the next step of each shard; how many are not settled. */
  private async round(): Promise<number> {
    const looks = await Promise.all(this.brokers.map((broker) => broker.look()))
    const nodes = this.brokers.map(({ nodeId }) => nodeId)
    const shards = Math.max(...looks.map((views) => views?.length ?? 0))
    const steps = this.brokers.map((): MembershipStep[] => [])
    let open = 0
    for (let shard = 0; shard < shards; shard++) {
      const wanted = nodes[shard % nodes.length] as NodeId
      if (isSettled(looks, shard, nodes, wanted)) continue
      open++
      const leader = leaderOf(looks, shard)
      const view = leader === undefined ? undefined : looks[leader]?.[shard]
      const step = view == null ? undefined : nextStep(view, nodes, wanted)
      if (leader !== undefined && step !== undefined) steps[leader]?.push({ shard, step })
    }
    await Promise.all(this.brokers.map((broker, i) => broker.take(steps[i] ?? [])))
    return open
  }

  /** The number of the broker that leads, if one says so. */
  async leader(shard: number): Promise<number | undefined> {
    return leaderOf(await Promise.all(this.brokers.map((broker) => broker.look())), shard)
  }

  /** Every shard has a leader that a majority of the brokers knows. */
  async led(withinMs: number = 60_000): Promise<void> {
    const deadline = performance.now() + withinMs
    for (;;) {
      const looks = await Promise.all(this.brokers.map((broker) => broker.look()))
      const shards = Math.max(...looks.map((views) => views?.length ?? 0))
      let led = 0
      for (let shard = 0; shard < shards; shard++) {
        const leader = leaderOf(looks, shard)
        const term = leader === undefined ? undefined : looks[leader]?.[shard]?.term
        const known = looks.filter((views) => views?.[shard]?.term === term)
        if (leader !== undefined && known.length * 2 > this.brokers.length) led++
      }
      if (shards > 0 && led === shards) return
      if (performance.now() > deadline) {
        throw new Error(`${shards - led} of ${shards} shards had no leader within ${withinMs} ms`)
      }
      await pause(LOOK_MS)
    }
  }

  /** Whatever state its brokers are in. `keep`: what they wrote stays, and where it is is told. */
  async close(options: { readonly keep?: boolean } = {}): Promise<string | undefined> {
    await Promise.all(this.brokers.map((broker) => broker.end('SIGTERM')))
    if (options.keep === true) return this.dir
    await rm(this.dir, { recursive: true, force: true })
    return undefined
  }
}

function leaderOf(looks: readonly (Views | undefined)[], shard: number): number | undefined {
  let [found, term]: [number | undefined, number] = [undefined, 0]
  for (const [i, views] of looks.entries()) {
    const view = views?.[shard]
    if (view?.role === 'leader' && view.term > term) [found, term] = [i, view.term]
  }
  return found
}

function isSettled(
  looks: readonly (Views | undefined)[],
  shard: number,
  nodes: readonly NodeId[],
  leader: NodeId,
): boolean {
  return looks.every((views) => {
    const view = views?.[shard]
    if (view == null || !view.settled || view.leader !== leader) return false
    return nodes.every((node) => view.members.voters.includes(node))
  })
}

function nextStep(
  { members, settled }: ShardView,
  nodes: readonly NodeId[],
  leader: NodeId,
): MembershipStep['step'] | undefined {
  if (!settled) return undefined
  const { voters, learners } = members
  const missing = nodes.find((node) => !voters.includes(node) && !learners.includes(node))
  if (missing !== undefined) return { kind: 'add-learner', node: missing }
  const [learner] = learners
  if (learner !== undefined) return { kind: 'promote', node: learner }
  return { kind: 'hand-over', node: leader }
}

// Who keeps which shard of the metadata, decided by hand where gossip and the ring will: each shard has brokers that should
// keep it, and whoever leads it is told the next step there, one at a time.
//
//   missing ──add-learner──> learner ──promote, when it has caught up──> voter      surplus ──remove──> gone
//
// A broker that has lost its disk is another node at the same place. What it was is removed first: with the dead and the new
// as members together, one more such loss would leave no majority.

import type { ShardView } from '../../broker/shards/types.ts'
import type { MembersChange } from '../../core/raft/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Machine, Watcher } from '../machine.ts'
import type { World } from '../world.ts'

const TICK_MS = 150
const REPLICAS = 3

type Control = NonNullable<Machine['shards']>

export class Membership {
  private readonly world: World
  private readonly machines: readonly Machine[]
  private readonly watcher: Watcher
  /** Of each shard, by number of the broker. */
  private readonly wanted: (readonly number[])[]

  constructor(world: World, machines: readonly Machine[], shards: number, watcher: Watcher) {
    this.world = world
    this.machines = machines
    this.watcher = watcher
    // Two members would need both, so a lone founder stays alone until there are two more.
    const few = machines.length < REPLICAS
    this.wanted = Array.from({ length: shards }, (_, shard) =>
      few ? [0] : Array.from({ length: REPLICAS }, (__, i) => (shard + i) % machines.length),
    )
  }

  start(): void {
    this.world.clock.after(TICK_MS, () => {
      for (let shard = 0; shard < this.wanted.length; shard++) this.step(shard)
      this.start()
    })
  }

  /** Other brokers should keep it from now on: `first` and those that follow it. */
  move(shard: number, first: number): void {
    const wanted = this.wanted[shard]
    if (wanted === undefined || wanted.length < REPLICAS) return
    this.wanted[shard] = wanted.map((_, i) => (first + i) % this.machines.length)
    this.watcher.say(`membership: shard ${shard} shall be kept by ${this.told(shard)}`)
  }

  handOver(shard: number, broker: number): boolean {
    const leader = this.leaderOf(shard)
    const to = this.machines[broker]?.nodeId
    if (leader === undefined || to === undefined) return false
    const refusal = leader.shards.handOver(shard, to)
    const how = refusal === undefined ? 'is handed' : `is not handed (${refusal})`
    this.watcher.say(`membership: shard ${shard} ${how} from ${leader.host} to b${broker + 1}`)
    return refusal === undefined
  }

  /** Every shard is kept by whom it should be. */
  get settled(): boolean {
    return this.wanted.every((_, shard) => {
      const leader = this.leaderOf(shard)
      return leader?.view.settled === true && this.next(shard, leader.view) === undefined
    })
  }

  private step(shard: number): void {
    const leader = this.leaderOf(shard)
    if (leader === undefined || !leader.view.settled) return
    const change = this.next(shard, leader.view)
    if (change === undefined) return
    const { shards, host } = leader
    const leaves = change.kind === 'remove' && change.node === leader.nodeId
    // A leader that shall leave hands over first.
    const heir = leaves
      ? leader.view.members.voters.find((node) => node !== change.node)
      : undefined
    if (heir !== undefined) {
      shards.handOver(shard, heir)
      return
    }
    const refusal = shards.change(shard, change)
    if (refusal !== undefined) return
    this.watcher.say(
      `membership: shard ${shard}, told to ${host}: ${change.kind} ${this.nameOf(change.node)}`,
    )
  }

  private next(shard: number, { members }: ShardView): MembersChange | undefined {
    const { voters, learners } = members
    const nodes = this.machines.map(({ nodeId }) => nodeId)
    const gone = [...learners, ...voters].find((node) => !nodes.includes(node))
    if (gone !== undefined) return { kind: 'remove', node: gone }
    const wanted: NodeId[] = []
    for (const broker of this.wanted[shard] ?? []) {
      const node = nodes[broker]
      // It is being made anew: nobody is removed for somebody who is not there yet.
      if (node === undefined) return undefined
      wanted.push(node)
    }
    const missing = wanted.find((node) => !voters.includes(node) && !learners.includes(node))
    if (missing !== undefined) return { kind: 'add-learner', node: missing }
    const learner = learners.find((node) => wanted.includes(node))
    if (learner !== undefined) return { kind: 'promote', node: learner }
    const surplus = [...learners, ...voters].find((node) => !wanted.includes(node))
    return surplus === undefined ? undefined : { kind: 'remove', node: surplus }
  }

  /** Of several that think so the one of the newest term; none that is paused or gone. */
  private leaderOf(shard: number):
    | {
        readonly shards: Control
        readonly view: ShardView
        readonly host: string
        readonly nodeId: NodeId | undefined
      }
    | undefined {
    let found: ReturnType<Membership['leaderOf']>
    for (const { shards, host, nodeId } of this.machines) {
      const view = shards?.view(shard)
      if (shards === undefined || view?.role !== 'leader') continue
      if (found === undefined || view.term > found.view.term) found = { shards, view, host, nodeId }
    }
    return found
  }

  private nameOf(node: NodeId): string {
    return this.machines.find(({ nodeId }) => nodeId === node)?.host ?? 'a node that is no more'
  }

  private told(shard: number): string {
    return (this.wanted[shard] ?? []).map((broker) => this.machines[broker]?.host).join(' ')
  }
}

// Brokers' memberships on a simulated network, each with what its disk would keep of it. Cores are judged elsewhere
// (test/core/swim); here it is that they are driven right.

import type { Address } from '../../../src/base/address.ts'
import { utf8 } from '../../../src/base/bytes.ts'
import { Members } from '../../../src/broker/members/members.ts'
import { ClusterKeys } from '../../../src/broker/seal/cluster-keys.ts'
import type { SwimSettings, View } from '../../../src/core/swim/types.ts'
import { type NodeId, nodeId } from '../../../src/model/ids.ts'
import type { ClusterIdentity, Profile } from '../../../src/model/swim.ts'
import type { ProcessPorts, SimProcess } from '../../../src/sim/process.ts'
import type { World } from '../../../src/sim/world.ts'
import { metricOf, SimNet } from '../support/sim-net.ts'

export const PORT = 2922
export const SHARDS = 64

export function addressOf(name: string): Address {
  return { host: name, port: PORT }
}

export function idOf(name: string): NodeId {
  return nodeId(Buffer.from(name).toString('hex').padEnd(32, '0'))
}

/** What a broker's disk keeps. */
interface Kept {
  boot: number
  cluster: ClusterIdentity | undefined
  founder: boolean
  /** Addresses of the members that it last knew. */
  peers: readonly Address[]
}

export interface BrokerOptions {
  readonly settings?: Partial<SwimSettings>
  readonly metadataShards?: number
  /** The first seals, all open. */
  readonly clusterKeys?: readonly [string, ...string[]]
  /** To be awaited before the cluster is written down. */
  readonly slowDisk?: () => Promise<void>
  readonly ports?: (ports: ProcessPorts) => ProcessPorts
  readonly onMember?: (members: Members) => void
}

export class Broker {
  readonly name: string
  readonly id: NodeId
  readonly process: SimProcess
  readonly members: Members
  readonly kept: Kept
  readonly views: View[] = []
  readonly hints: string[] = []
  readonly refusals: number[] = []
  readonly foreign: { readonly cluster: ClusterIdentity; readonly yields: boolean }[] = []
  /** What became of its `join`. */
  joined: ClusterIdentity | undefined
  failed: unknown

  constructor(world: World, name: string, kept: Kept, options: BrokerOptions) {
    this.name = name
    this.id = idOf(name)
    this.kept = kept
    this.process = world.process(name)
    const ports = options.ports?.(this.process.ports) ?? this.process.ports
    this.members = new Members({
      ports,
      nodeId: this.id,
      bootCount: kept.boot,
      cluster: kept.cluster,
      peers: kept.peers,
      metadataShards: options.metadataShards ?? SHARDS,
      profile: profileOf(name),
      settings: options.settings ?? {},
      clusterKeys: options.clusterKeys && keysOf(ports, options.clusterKeys),
      hooks: {
        onCluster: async (cluster, founder) => {
          await options.slowDisk?.()
          kept.cluster = cluster
          kept.founder = founder
        },
        onMember: () => {
          options.onMember?.(this.members)
          kept.peers = this.members.neighbours().map(({ cluster }) => cluster)
        },
        onRefused: (boot) => this.refusals.push(boot),
        onForeign: (cluster, yields) => this.foreign.push({ cluster, yields }),
        onHint: ({ shard, term, leader }) => {
          this.hints.push(`${shard} ${term} ${nameOf(leader)}`)
        },
      },
    })
    this.members.onView((view) => this.views.push(view))
  }

  async start(seeds: readonly Address[]): Promise<void> {
    await this.members.listen(addressOf(this.name))
    this.members.join(seeds).then(
      (cluster) => {
        this.joined = cluster
      },
      (error: unknown) => {
        this.failed = error
      },
    )
  }

  /** The others that it counts on, by name, in order. */
  get sees(): readonly string[] {
    const { members } = this.members.view()
    return members.map(({ member }) => nameOf(member.node)).filter((name) => name !== this.name)
  }

  /** Nothing moves in its view. */
  get settled(): boolean {
    return this.members.view().stableSince !== undefined
  }

  stateOf(other: string): string | undefined {
    const { members } = this.members.view()
    return members.find(({ member }) => member.node === idOf(other))?.member.state
  }

  get log(): readonly string[] {
    return this.process.ports.log.lines.map(({ level, message, fields }) => {
      const about = fields['name'] ?? fields['seed']
      return `${level}: ${message}${typeof about === 'string' ? `: ${about}` : ''}`
    })
  }

  metric(name: string): Promise<number> {
    return metricOf(this.process, `eastguard_members_${name}`)
  }
}

export function keysOf(
  ports: Pick<ProcessPorts, 'secrets' | 'random'>,
  [first, ...others]: readonly [string, ...string[]],
): ClusterKeys {
  return new ClusterKeys(ports, [utf8(first), ...others.map(utf8)])
}

function profileOf(name: string): Profile {
  return {
    name,
    cluster: addressOf(name),
    client: { host: name, port: 2921 },
    data: { host: name, port: 2923 },
    hostLabel: name,
    rackLabel: '',
    capacityBytes: 1e12,
    loadBytes: 0,
  }
}

function nameOf(node: NodeId): string {
  return Buffer.from(node, 'hex').toString().replaceAll('\0', '')
}

export class Net extends SimNet {
  /** Of each name the one that was started last. */
  readonly brokers: Map<string, Broker> = new Map()
  private readonly disks = new Map<string, Kept>()

  constructor(seed: number) {
    super(seed, 10)
  }

  /** A start on the disk of that name; `seeds` are names. */
  async start(
    name: string,
    seeds: readonly string[] = [],
    options: BrokerOptions = {},
  ): Promise<Broker> {
    const kept = this.disk(name)
    kept.boot++
    const broker = new Broker(this.world, name, kept, options)
    this.brokers.set(name, broker)
    await broker.start(seeds.map(addressOf))
    return broker
  }

  disk(name: string): Kept {
    let kept = this.disks.get(name)
    if (kept === undefined) {
      kept = { boot: 0, cluster: undefined, founder: false, peers: [] }
      this.disks.set(name, kept)
    }
    return kept
  }

  /** The first founds a cluster, and all others join through it. */
  async cluster(names: readonly string[], options: BrokerOptions = {}): Promise<readonly Broker[]> {
    const [first = '', ...others] = names
    const all = [await this.start(first, [], options)]
    for (const name of others) all.push(await this.start(name, [first], options))
    await this.until('all see all', () => agreed(all))
    return all
  }

  partition(left: readonly string[], right: readonly string[], cut: boolean): void {
    const { network } = this.world
    for (const a of left) {
      for (const b of right) {
        const change = cut ? 'cut' : 'heal'
        network[change](a, b)
        network[change](b, a)
      }
    }
  }
}

/** All of these see just all of these, in views that are still. */
export function agreed(brokers: readonly Broker[]): boolean {
  const names = brokers.map(({ name }) => name).sort()
  return brokers.every(
    (one) => one.settled && [...one.sees, one.name].sort().join(' ') === names.join(' '),
  )
}

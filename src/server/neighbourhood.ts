// How a broker knows the others of its cluster. Usually by itself: it joins through seeds, or founds a cluster, and from then
// on members tell one another (broker/members). Tests may tell it instead, and then they say who is there.

import { toHex } from '../base/bytes.ts'
import type { EastGuardError } from '../base/errors.ts'
import { type DataPort, openDataPort } from '../broker/data/data-port.ts'
import { Members } from '../broker/members/members.ts'
import { foundedByMistake, refusedAsOld } from '../broker/members/news.ts'
import type { Neighbour } from '../broker/options.ts'
import { ClusterKeys } from '../broker/seal/cluster-keys.ts'
import type { BrokerSight } from '../broker/shards/keeper.ts'
import { clusterId, type NodeId } from '../model/ids.ts'
import type { Profile, ShardHint } from '../model/swim.ts'
import type { Address, Streams } from '../ports/streams.ts'
import type { DataDir } from '../storage/datadir/data-dir.ts'
import { PeersKept } from './peers-kept.ts'
import type { MembershipSettings, ServerPorts, ServerSettings } from './types.ts'

export interface Neighbourhood {
  /** Where other brokers reach this one; undefined: it stays alone. */
  readonly address: Address | undefined
  /** For the links between brokers. */
  readonly streams: Streams
  addressOf(node: NodeId): Address | undefined
  /** Undefined: it stays alone. Others are told that it is there before anybody need listen on it. */
  readonly data: DataPort | undefined
  dataAddressOf(node: NodeId): Address | undefined
  /** The others that are known and have not left. */
  neighbours(): readonly Neighbour[]
  /** The others that are known. */
  known(): readonly Neighbour[]
  /** Who is there. Undefined: whoever started this broker decides what follows from that. */
  sight(): BrokerSight | undefined
  lead(shard: number, term: number): void
  /** The native door is open at this port. */
  clientPort(port: number): void
  /** `listener`: who leads a shard, as others say. */
  onHint(listener: (hint: ShardHint) => void): void
  /** Tells the others that this broker stops. */
  leave(): Promise<void>
  stop(): Promise<void>
}

export interface NeighbourhoodOptions {
  readonly ports: ServerPorts
  readonly settings: ServerSettings
  readonly dataDir: DataDir
  /** This broker must stop. */
  onFatal(error: EastGuardError): void
  /** So must it because its disk failed. */
  onFailed(error: Error): void
  /** As `work` ends; but rejects when the broker should wait no more. */
  unlessEnded<T>(work: Promise<T>): Promise<T>
}

/** Resolves when the data directory knows its cluster, which for a new broker that joins one may take a while. */
export async function openNeighbourhood(options: NeighbourhoodOptions): Promise<Neighbourhood> {
  const { membership } = options.settings
  return membership === undefined ? told(options) : joined(options, membership)
}

// Told by hand, or alone.

async function told({ ports, settings, dataDir }: NeighbourhoodOptions): Promise<Neighbourhood> {
  const { cluster, metadataShards: shards } = settings
  if (dataDir.cluster === undefined) {
    const joins = cluster?.joins
    await dataDir.joined({
      id: joins ?? clusterId(toHex(ports.random.bytes(16))),
      foundedMs: ports.clock.wall(),
      shards,
      founder: joins === undefined,
    })
  }
  const neighbours = (): readonly Neighbour[] =>
    cluster?.neighbours().filter(({ nodeId }) => nodeId !== dataDir.nodeId) ?? []
  const data =
    cluster === undefined ? undefined : await openDataPort(ports.streams, dataAddress(settings))
  return {
    address: cluster === undefined ? undefined : { host: settings.host, port: cluster.port },
    streams: ports.streams,
    addressOf: (node) => neighbours().find(({ nodeId }) => nodeId === node)?.cluster,
    data,
    dataAddressOf: (node) => neighbours().find(({ nodeId }) => nodeId === node)?.data,
    neighbours,
    known: neighbours,
    sight: () => undefined,
    lead: () => {},
    clientPort: () => {},
    onHint: () => {},
    leave: async () => {},
    stop: async () => data?.close(),
  }
}

// Among members.

async function joined(
  options: NeighbourhoodOptions,
  membership: MembershipSettings,
): Promise<Neighbourhood> {
  const { ports, settings, dataDir } = options
  let listener: (hint: ShardHint) => void = () => {}
  const members: Members = new Members({
    ports,
    nodeId: dataDir.nodeId,
    bootCount: dataDir.bootCount,
    cluster: dataDir.cluster,
    peers: dataDir.peers,
    metadataShards: settings.metadataShards,
    profile: profileOf(settings, membership),
    ...(membership.swim !== undefined && { settings: membership.swim }),
    clusterKeys: keysOf(ports, membership),
    hooks: {
      onCluster: (cluster, founder) => dataDir.joined({ ...cluster, founder }),
      // Packets may say what they like, so the directory is not marked; links between brokers tell an older copy for certain.
      onRefused: (boot) => options.onFatal(refusedAsOld(dataDir.nodeId, dataDir.bootCount, boot)),
      onForeign: (other, yields, from) => {
        const own = dataDir.cluster
        if (yields && own?.founder === true) options.onFatal(foundedByMistake(own, other, from))
      },
      onHint: (hint) => listener(hint),
    },
  })
  const { clock, log } = ports
  const peers = new PeersKept({
    clock,
    log,
    dataDir,
    known: () => members.known(),
    onFailed: (error) => options.onFailed(error),
  })
  members.onView(() => peers.changed())
  let data: DataPort | undefined
  try {
    data = await openDataPort(members.sealed(ports.streams), dataAddress(settings))
    const { port } = data.address
    const opened = data
    const address = await members.listen({ host: settings.host, port: membership.port })
    members.setProfile({ data: { host: settings.advertiseHost, port } })
    const joining = members.join(membership.seeds)
    // Who has a cluster goes on in it, and is found by the others if its seeds are gone.
    joining.catch(() => undefined)
    if (dataDir.cluster === undefined) await options.unlessEnded(joining)
    return {
      address,
      streams: members.streams,
      addressOf: (node) => members.addressOf(node),
      data,
      dataAddressOf: (node) => members.dataAddressOf(node),
      neighbours: () => members.neighbours(),
      known: () => members.known(),
      sight: () => sightOf(members),
      lead: (shard, term) => members.lead(shard, term),
      clientPort: (port) => members.setProfile({ client: { host: settings.advertiseHost, port } }),
      onHint: (heard) => {
        listener = heard
      },
      leave: () => members.leave(),
      stop: async () => {
        peers.stop()
        await Promise.all([members.stop(), opened.close()])
      },
    }
  } catch (error) {
    peers.stop()
    await Promise.all([members.stop(), data?.close()])
    throw error
  }
}

function keysOf(ports: ServerPorts, membership: MembershipSettings): ClusterKeys | undefined {
  const [first, ...others] = membership.clusterKeys ?? []
  return first === undefined ? undefined : new ClusterKeys(ports, [first, ...others])
}

function dataAddress({ host, dataPort: port }: ServerSettings): Address {
  return { host, port }
}

function profileOf(settings: ServerSettings, membership: MembershipSettings): Profile {
  const { advertiseHost: host, clientPort, displayName: name, hostLabel } = settings
  return {
    name,
    cluster: { host, port: membership.port },
    client: { host, port: clientPort },
    data: { host, port: settings.dataPort },
    hostLabel,
    rackLabel: membership.rackLabel,
    capacityBytes: 0,
    loadBytes: 0,
  }
}

function sightOf(members: Members): BrokerSight {
  const { stableSince, members: all } = members.view()
  const there = all.filter(({ held }) => !held)
  return {
    stableSince,
    brokers: there.map(({ member: { node, profile } }) => ({
      node,
      hostLabel: profile.hostLabel,
      rackLabel: profile.rackLabel,
    })),
  }
}

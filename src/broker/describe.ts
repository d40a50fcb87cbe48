// The cluster as this broker knows it: itself, the brokers it has heard of, and how the metadata is spread over them.

import type { MetadataView } from '../core/metadata/types.ts'
import type { NodeId } from '../model/ids.ts'
import type { RedirectBroker } from '../model/redirect.ts'
import type { DiskSpace } from '../ports/disk.ts'
import type { DescribeClusterResponse } from '../wire/native/describe-cluster.ts'
import type { RangeTrouble } from './coordinator/types.ts'
import { healthOf, type Living } from './health.ts'
import type { BrokerOptions, Neighbour } from './options.ts'
import type { Census } from './replica/census.ts'
import { usablePlaces } from './topics/placing.ts'

type Described = DescribeClusterResponse['brokers'][number]
type Known = Pick<
  Described,
  'nodeId' | 'displayName' | 'host' | 'clientPort' | 'state' | 'hostLabel' | 'rackLabel'
>

export function describeCluster(
  options: BrokerOptions,
  state: MetadataView,
  space: DiskSpace,
  troubles: readonly RangeTrouble[] = [],
  diskFull: (node: NodeId) => boolean = () => false,
): DescribeClusterResponse {
  let ranges = 0
  let segments = 0
  for (const topic of state.topics.values()) {
    ranges += topic.active.length
    for (const range of topic.ranges) segments += range.segments.length
  }
  const shards = leaderships(options)
  return {
    clusterId: options.clusterId,
    topics: state.topics.size,
    ranges,
    segments,
    shards: shards.length,
    shardsLed: shards.filter(({ leader }) => leader !== undefined).length,
    ...healthOf(state, livingOf(options, state), troubles),
    brokers: describeBrokers(options, state, space, diskFull),
  }
}

/** Whoever coordinates them knows more, and may be another broker than the one that is asked. */
export function brokenHere({ unfit }: Pick<Census, 'unfit'>): readonly RangeTrouble[] {
  return Array.from(unfit).flatMap(({ key, status, fault }) => {
    return status === 'broken' ? [{ key, text: `damaged here: ${fault?.message ?? ''}` }] : []
  })
}

function livingOf(options: BrokerOptions, { nodes }: MetadataView): Living {
  const there = options.others().filter(({ state }) => state === 'alive' || state === 'suspect')
  const alive = new Set([options.nodeId, ...there.map(({ nodeId }) => nodeId)])
  return { alive: (node) => alive.has(node), usable: usablePlaces(options, nodes).length }
}

function describeBrokers(
  options: BrokerOptions,
  { nodes }: MetadataView,
  space: DiskSpace,
  diskFull: (node: NodeId) => boolean,
): readonly Described[] {
  const held = new Map<NodeId, number>()
  const led = new Map<NodeId, number>()
  for (const { members, leader } of leaderships(options)) {
    for (const node of members) held.set(node, (held.get(node) ?? 0) + 1)
    if (leader !== undefined) led.set(leader, (led.get(leader) ?? 0) + 1)
  }
  const whole = (known: Known): Described => ({
    ...known,
    nodeNumber: nodes.get(known.nodeId)?.number ?? 0,
    role: nodes.get(known.nodeId)?.role ?? 'member',
    shards: held.get(known.nodeId) ?? 0,
    leads: led.get(known.nodeId) ?? 0,
    version: '',
    diskTotalBytes: 0,
    diskFreeBytes: 0,
    diskFull: diskFull(known.nodeId),
  })
  const { nodeId, displayName, hostLabel, rackLabel, advertised, version } = options
  const { host, port: clientPort } = advertised
  const own = { nodeId, displayName, host, hostLabel, rackLabel, state: 'alive' } as const
  const brokers = [
    {
      ...whole({ ...own, clientPort }),
      version,
      diskTotalBytes: space.totalBytes,
      diskFreeBytes: space.freeBytes,
    },
    ...options
      .others()
      .filter((other) => !isGone(other, nodes))
      .map(
        ({
          nodeId: other,
          displayName: name,
          hostLabel: label,
          rackLabel: rack,
          state: how,
          client,
        }) =>
          whole({
            nodeId: other,
            displayName: name,
            hostLabel: label,
            rackLabel: rack,
            state: how,
            host: client.host,
            clientPort: client.port,
          }),
      ),
  ]
  return brokers.sort((a, b) => a.nodeNumber - b.nodeNumber)
}

/** Those of `nodes` whose addresses are known, this broker among them: where a client may be sent. */
export function reachable(
  options: BrokerOptions,
  nodes: readonly NodeId[],
): readonly RedirectBroker[] {
  const addresses = new Map([[options.nodeId, options.advertised]])
  for (const { nodeId, client } of options.others()) addresses.set(nodeId, client)
  return nodes.flatMap((nodeId) => {
    const address = addresses.get(nodeId)
    return address === undefined ? [] : [{ nodeId, address }]
  })
}

/** Who has followed nobody else since its leader died still names it, and it answers nobody. */
function leaderships(options: BrokerOptions): ReturnType<BrokerOptions['shards']> {
  const others = options.others().filter(({ state }) => state === 'dead' || state === 'left')
  const silent = new Set(others.map(({ nodeId }) => nodeId))
  return options
    .shards()
    .map(({ members, leader }) =>
      leader !== undefined && silent.has(leader)
        ? { members, leader: undefined }
        : { members, leader },
    )
}

/** A broker that was only stopped still has its part of the metadata: it is missed until somebody removes it. */
function isGone({ nodeId, state }: Neighbour, nodes: MetadataView['nodes']): boolean {
  return state === 'left' && (nodes.get(nodeId)?.role ?? 'removed') === 'removed'
}

// A topic as a client reaches it: who leads each partition, and who holds what is written there now. Which segment that
// holds for is part of it, because segment numbers only grow: whoever names a greater one knows better, be it a route that
// was looked up or a broker that sends the client elsewhere (model/redirect.ts).

import type { NodeId } from '../model/ids.ts'
import type { BrokerView, RangeView, TopicView } from '../model/metadata.ts'
import { SEGMENT_UNKNOWN } from '../model/redirect.ts'
import type { Address } from '../ports/streams.ts'

/** A broker that can be read from, and where it stands. */
export interface Replica {
  readonly nodeId: NodeId
  readonly address: Address
  /** Empty: not known. */
  readonly hostLabel: string
  readonly rackLabel: string
  /** The others hold it for dead: asked last. */
  readonly gone: boolean
}

export interface PartitionRoute {
  /** The open segment; SEGMENT_UNKNOWN for a partition that nobody told of. */
  readonly segment: number
  /** Undefined: not known; ask any broker. */
  readonly leader: Address | undefined
  readonly replicas: readonly Replica[]
}

/** A topic as it was when looked up. */
export interface TopicRoute {
  readonly view: TopicView
  readonly loadedAtMs: number
  readonly partitions: readonly PartitionRoute[]
  /** All brokers by address, so that one to which a broker sends the client can be judged by where it stands. */
  readonly brokers: ReadonlyMap<string, Replica>
}

const NOWHERE: PartitionRoute = { segment: SEGMENT_UNKNOWN, leader: undefined, replicas: [] }

export function addressName({ host, port }: Address): string {
  return `${host}:${port}`
}

export function routeOf(
  view: TopicView,
  brokers: readonly BrokerView[],
  loadedAtMs: number,
): TopicRoute {
  const replicas = new Map(brokers.map((broker) => [broker.nodeId, replicaOf(broker)]))
  const partitions: PartitionRoute[] = Array.from({ length: view.policy.partitions }, () => NOWHERE)
  for (const range of view.ranges) {
    if (range.state !== 'active') continue
    partitions.fill(rangeRoute(range, replicas), range.firstPartition, range.endPartition)
  }
  const byAddress = [...replicas.values()].map((each) => [addressName(each.address), each] as const)
  return { view, loadedAtMs, partitions, brokers: new Map(byAddress) }
}

function rangeRoute(range: RangeView, brokers: ReadonlyMap<NodeId, Replica>): PartitionRoute {
  const open = range.segments.at(-1)
  if (open === undefined) return NOWHERE
  const [leader] = open.replicas
  return {
    segment: open.segment,
    leader: leader === undefined ? undefined : brokers.get(leader)?.address,
    replicas: open.replicas.flatMap((node) => brokers.get(node) ?? []),
  }
}

function replicaOf(broker: BrokerView): Replica {
  const { nodeId, host, clientPort, hostLabel, rackLabel, state } = broker
  const address = { host, port: clientPort }
  return { nodeId, address, hostLabel, rackLabel, gone: state === 'dead' || state === 'left' }
}

export function routeTo(route: TopicRoute, partition: number): PartitionRoute {
  return route.partitions[partition] ?? NOWHERE
}

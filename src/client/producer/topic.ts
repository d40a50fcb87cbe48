// A topic as one producer writes it: how it is acknowledged, and a lane for each partition that was written to.

import { Backoff } from '../../base/backoff.ts'
import { PRODUCER_WINDOW } from '../../model/limits.ts'
import type { Cluster } from '../cluster.ts'
import { Patience } from '../patience.ts'
import type { ClientPorts } from '../ports.ts'
import type { TopicRoute } from '../route.ts'
import type { ProducerBatch } from './batch.ts'
import { PartitionQueue } from './partition-queue.ts'
import type { Lane, ProducerTopic } from './sender.ts'
import type { ProducerSettings } from './settings.ts'

export interface Topic extends ProducerTopic {
  readonly idempotent: boolean
  /** By partition; made when first written to. */
  readonly lanes: (Lane | undefined)[]
  /** Where records without a key go until the batch there is full. */
  sticky: number
}

export function topicOf(route: TopicRoute, settings: ProducerSettings, ports: ClientPorts): Topic {
  const { name, policy } = route.view
  const acks = settings.acks ?? policy.acksDefault
  return {
    route,
    acks,
    idempotent: acks === 'all' && settings.idempotent !== false,
    refreshing: undefined,
    gone: false,
    patience: new Patience(ports.clock, ports.log, name, 'written'),
    resting: new Map(),
    lanes: [],
    sticky: Math.floor(ports.random.float() * policy.partitions),
  }
}

export function laneOf(
  topic: Topic,
  partition: number,
  cluster: Cluster,
  settled: (batch: ProducerBatch) => void,
): Lane {
  const known = topic.lanes[partition]
  if (known !== undefined) return known
  const { backoffMs, backoffMaxMs } = cluster.settings
  const { name } = topic.route.view
  const lane: Lane = {
    queue: new PartitionQueue({
      topic: name,
      partition,
      idempotent: topic.idempotent,
      window: windowOf(topic),
      settled,
    }),
    topic,
    backoff: new Backoff(cluster.ports.random, backoffMs, backoffMaxMs),
    listed: false,
    lingering: false,
    sizeHint: 0,
    identifying: false,
    identifiedBefore: false,
    redirect: undefined,
    hops: 0,
  }
  topic.lanes[partition] = lane
  return lane
}

function windowOf(topic: Topic): number {
  if (topic.acks === '0') return Number.MAX_SAFE_INTEGER
  // Without sequence numbers only one at a time keeps the order when it must be sent again.
  return topic.idempotent ? PRODUCER_WINDOW : 1
}

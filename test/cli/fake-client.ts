// A client without a cluster: topics are names, records are kept in one array per topic. Just enough to hear what a
// command asks for and to see what it makes of the answer.

import { EastGuardError } from '../../src/base/errors.ts'
import type {
  Admin,
  BrokerInfo,
  Client,
  ClusterInfo,
  Consumer,
  ConsumerBatch,
  ConsumerOptions,
  ConsumerRecord,
  CreateTopicOptions,
  ForceableEnd,
  Producer,
  ProducerRecord,
  RecordPlace,
} from '../../src/client/api.ts'
import { topicId } from '../../src/model/ids.ts'
import type { TopicView } from '../../src/model/metadata.ts'
import { POLICY_DEFAULTS, type TopicPolicy } from '../../src/model/policy.ts'

function unknown(name: string): EastGuardError {
  return new EastGuardError('UNKNOWN_TOPIC', `there is no topic ${name}`)
}

export class FakeClient implements Client {
  readonly topics: Map<string, TopicView> = new Map()
  readonly records: Map<string, ConsumerRecord[]> = new Map()
  readonly created: CreateTopicOptions[] = []
  readonly consumed: ConsumerOptions[] = []
  closed = 0
  health: Pick<ClusterInfo, 'underReplicated' | 'unavailable' | 'issues'> = {
    underReplicated: 0,
    unavailable: 0,
    issues: [],
  }
  brokers: readonly BrokerInfo[] = []
  /** Of a topic that is made without a number of them. */
  replicas = 1
  readonly roles: string[] = []
  /** Of the last segment of any range; undefined: no end is to be forced. */
  forceable: ForceableEnd | undefined
  readonly forced: string[] = []
  /** The brokers that keep records are away. */
  recordsAway = false

  producer(): Producer {
    const store = (record: ProducerRecord): RecordPlace => {
      const list = this.records.get(record.topic)
      if (list === undefined) throw unknown(record.topic)
      const bytes = (data: string | Uint8Array | null | undefined): Uint8Array | null =>
        data === null || data === undefined ? null : Buffer.from(data)
      list.push({
        topic: record.topic,
        partition: 0,
        offset: list.length,
        timestamp: 1_700_000_000_000,
        key: bytes(record.key),
        value: bytes(record.value),
        headers: [],
      })
      return { partition: 0, offset: list.length - 1, timestamp: 1_700_000_000_000 }
    }
    return {
      send: async (record) => store(record),
      sendBatch: async (records) => records.map(store),
      flush: async () => {},
      close: async () => {},
      [Symbol.asyncDispose]: async () => {},
    }
  }

  consumer(options: ConsumerOptions): Consumer {
    this.consumed.push(options)
    const records = this.records
    let close = (): void => {}
    const closed = new Promise<void>((resolve) => {
      close = resolve
    })
    async function* batches(): AsyncGenerator<ConsumerBatch> {
      const list = records.get(options.topic)
      if (list === undefined) throw unknown(options.topic)
      for (let at = 0; at < list.length; at += 2) {
        const part = list.slice(at, at + 2)
        const nextOffset = at + part.length
        yield {
          topic: options.topic,
          partition: 0,
          records: part,
          nextOffset,
          highWatermark: list.length,
        }
      }
      if (options.stopAtEnd !== true) await closed
    }
    return {
      batches,
      async *[Symbol.asyncIterator]() {
        for await (const batch of batches()) yield* batch.records
      },
      pause: () => {},
      resume: () => {},
      seek: () => {},
      position: () => undefined,
      partitions: () => [0],
      close: async () => close(),
      [Symbol.asyncDispose]: async () => close(),
    }
  }

  private known(): ForceableEnd {
    if (this.forceable !== undefined) return this.forceable
    throw new EastGuardError('END_NOT_FORCED', 'its end can be found without that')
  }

  admin(): Admin {
    const find = (name: string): TopicView => {
      const topic = this.topics.get(name)
      if (topic === undefined) throw unknown(name)
      return topic
    }
    return {
      createTopic: async (name, options = {}) => {
        this.created.push(options)
        const existing = this.topics.get(name)
        if (existing !== undefined) return { ...existing, created: false }
        const topic = makeTopic(name, { replicationFactor: this.replicas, ...options.policy })
        this.topics.set(name, topic)
        this.records.set(name, [])
        return { ...topic, created: true }
      },
      deleteTopic: async (name) => {
        find(name)
        this.topics.delete(name)
      },
      alterTopic: async (name, changes) => {
        const topic = find(name)
        const altered = { ...topic, policy: { ...topic.policy, ...changes } }
        this.topics.set(name, altered)
        return altered
      },
      addPartitions: async (name, partitions) => {
        const topic = find(name)
        return { ...topic, policy: { ...topic.policy, partitions } }
      },
      describeTopic: async (name) => find(name),
      describeTopics: async () => [...this.topics.values()],
      listTopics: async () => [...this.topics.keys()].toSorted(),
      describeCluster: async () => ({
        clusterId: '00',
        nodeId: '01',
        brokerVersion: '1',
        brokers: this.brokers,
        topics: this.topics.size,
        ranges: 0,
        segments: 0,
        shards: 1,
        shardsLed: 1,
        ...this.health,
        bytes: 0,
      }),
      setBrokerRole: async (_node, role) => {
        this.roles.push(role)
      },
      describeForcedEnd: async () => this.known(),
      forceEnd: async (name, number, { segment, end }) => {
        const known = this.known()
        this.forced.push(`${name}/${number}/${segment} at ${end}`)
        this.topics.set(name, succeeded(find(name), end))
        return known
      },
      listOffsets: async (name) => {
        if (this.recordsAway) throw new EastGuardError('NOT_LEADER', `the offsets of ${name}`)
        return [{ partition: 0, offset: this.records.get(name)?.length ?? 0, timestamp: -1 }]
      },
    }
  }

  async close(): Promise<void> {
    this.closed++
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** Each partition of a range has got as many offsets as the segment has entries. */
function succeeded(topic: TopicView, end: number): TopicView {
  const ranges = topic.ranges.map((range) => {
    const open = range.segments.at(-1)
    if (open === undefined) return range
    const { segment, firstOffsets } = open
    const next = firstOffsets.map((offset) => offset + end)
    const sealed = { ...open, state: 'sealed' as const, endEntry: end }
    const successor = { ...open, segment: segment + 1, firstOffsets: next }
    return { ...range, segments: [...range.segments.slice(0, -1), sealed, successor] }
  })
  return { ...topic, ranges }
}

function makeTopic(name: string, policy: Partial<TopicPolicy>): TopicView {
  return {
    name,
    topicId: topicId('0123456789abcdef0123456789abcdef'),
    policy: { ...POLICY_DEFAULTS, replicationFactor: 1, minInsyncReplicas: 1, ...policy },
    createdAtMs: 1_700_000_000_000,
    version: 1,
    ranges: [],
    logStartOffsets: [0],
  }
}

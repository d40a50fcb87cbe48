// Topics and the cluster, one call each: ask any broker, try again while that may help, until the time allowed is over.

import { toHex } from '../base/bytes.ts'
import { EastGuardError } from '../base/errors.ts'
import type { NodeId } from '../model/ids.ts'
import type { NodeRole, TopicView } from '../model/metadata.ts'
import { checkTopicName } from '../model/topic-name.ts'
import { addPartitions } from '../wire/native/add-partitions.ts'
import { alterTopic } from '../wire/native/alter-topic.ts'
import { createTopic } from '../wire/native/create-topic.ts'
import { deleteTopic } from '../wire/native/delete-topic.ts'
import { describeCluster } from '../wire/native/describe-cluster.ts'
import { DESCRIBE_TOPICS_MAX, describeTopics } from '../wire/native/describe-topics.ts'
import { forceEnd, ONLY_TOLD } from '../wire/native/force-end.ts'
import { LIST_TOPICS_MAX, listTopics } from '../wire/native/list-topics.ts'
import { setBrokerRole } from '../wire/native/set-broker-role.ts'
import type {
  Admin,
  CallOptions,
  ClusterInfo,
  CreatedTopic,
  CreateTopicOptions,
  ForceableEnd,
  OffsetAt,
  PartitionOffset,
  PolicyChanges,
} from './api.ts'
import type { Cluster } from './cluster.ts'
import { offsetsAt } from './offsets.ts'
import { type Deadline, deadlineIn } from './timing.ts'

const TOKEN_BYTES = 16

export class ClusterAdmin implements Admin {
  private readonly cluster: Cluster

  constructor(cluster: Cluster) {
    this.cluster = cluster
  }

  async createTopic(name: string, options: CreateTopicOptions = {}): Promise<CreatedTopic> {
    checkTopicName(name)
    const deadline = this.deadline(options)
    // One token for all attempts: a second one after a lost answer is told what the first came to.
    const token = toHex(this.cluster.ports.random.bytes(TOKEN_BYTES))
    const { policy = {}, ifNotExists = false } = options
    const request = { name, token, ifNotExists, policy }
    const what = `creating topic '${name}'`
    const { created, topicId } = await this.cluster.call(what, createTopic, request, deadline)
    this.cluster.forgetTopic(name)
    const view = await this.describe(name, deadline)
    if (view.topicId !== topicId) {
      const message = `topic '${name}' was made, and deleted again by somebody else since`
      throw new EastGuardError('UNKNOWN_TOPIC', message, { detail: { topicId } })
    }
    return { ...view, created }
  }

  async deleteTopic(name: string, options: CallOptions = {}): Promise<void> {
    let retried = false
    const onRetry = (): void => {
      retried = true
    }
    const deadline = this.deadline(options)
    const what = `deleting topic '${name}'`
    try {
      await this.cluster.call(what, deleteTopic, { name }, deadline, undefined, onRetry)
    } catch (error) {
      // After a retry it means that the attempt whose answer was lost has deleted it.
      const gone = error instanceof EastGuardError && error.code === 'UNKNOWN_TOPIC'
      if (!gone || !retried) throw error
    }
    this.cluster.forgetTopic(name)
  }

  async alterTopic(
    name: string,
    changes: PolicyChanges,
    options: CallOptions = {},
  ): Promise<TopicView> {
    const deadline = this.deadline(options)
    await this.cluster.call(`altering topic '${name}'`, alterTopic, { name, changes }, deadline)
    return this.describe(name, deadline)
  }

  async addPartitions(
    name: string,
    partitions: number,
    options: CallOptions = {},
  ): Promise<TopicView> {
    const deadline = this.deadline(options)
    const what = `adding partitions to '${name}'`
    await this.cluster.call(what, addPartitions, { name, partitions }, deadline)
    this.cluster.forgetTopic(name)
    return this.describe(name, deadline)
  }

  describeTopic(name: string, options: CallOptions = {}): Promise<TopicView> {
    return this.describe(name, this.deadline(options))
  }

  async describeTopics(
    names?: readonly string[],
    options: CallOptions = {},
  ): Promise<readonly TopicView[]> {
    const deadline = this.deadline(options)
    const all = names ?? (await this.names(deadline))
    const views: TopicView[] = []
    for (let at = 0; at < all.length; at += DESCRIBE_TOPICS_MAX) {
      const request = { names: all.slice(at, at + DESCRIBE_TOPICS_MAX), brief: false }
      const answer = await this.cluster.call('describing topics', describeTopics, request, deadline)
      for (const item of answer.topics) {
        if (!('error' in item)) views.push(item.topic)
        // A topic that was listed and is gone by now is not an error of the caller's.
        else if (names !== undefined) throw new EastGuardError(item.error, item.message)
      }
    }
    return views
  }

  listTopics(options: CallOptions = {}): Promise<readonly string[]> {
    return this.names(this.deadline(options))
  }

  async describeCluster(options: CallOptions = {}): Promise<ClusterInfo> {
    const { cluster } = this
    const deadline = this.deadline(options)
    const answer = await cluster.call('describing the cluster', describeCluster, {}, deadline)
    const welcome = cluster.at(undefined).welcome
    return {
      ...answer,
      nodeId: welcome?.nodeId ?? '',
      brokerVersion: welcome?.brokerVersion ?? '',
    }
  }

  async setBrokerRole(nodeId: NodeId, role: NodeRole, options: CallOptions = {}): Promise<void> {
    const deadline = this.deadline(options)
    const what = `making broker ${nodeId} ${role}`
    await this.cluster.call(what, setBrokerRole, { nodeId, role }, deadline)
  }

  describeForcedEnd(
    topic: string,
    range: number,
    options: CallOptions = {},
  ): Promise<ForceableEnd> {
    const what = `asking for the end of range ${range} of '${topic}'`
    const request = { topic, range, segment: ONLY_TOLD, end: ONLY_TOLD }
    return this.cluster.call(what, forceEnd, request, this.deadline(options))
  }

  async forceEnd(
    topic: string,
    range: number,
    at: { readonly segment: number; readonly end: number },
    options: CallOptions = {},
  ): Promise<ForceableEnd> {
    const { segment, end } = at
    if (!Number.isSafeInteger(end) || end < 0) {
      throw new EastGuardError('INVALID_ARGUMENT', `a segment cannot end at ${end} entries`)
    }
    const what = `ending segment ${segment} of range ${range} of '${topic}'`
    const request = { topic, range, segment, end }
    return this.cluster.call(what, forceEnd, request, this.deadline(options))
  }

  async listOffsets(
    topic: string,
    at: OffsetAt,
    options: CallOptions & { readonly partitions?: readonly number[] } = {},
  ): Promise<readonly PartitionOffset[]> {
    const deadline = this.deadline(options)
    const route = await this.cluster.freshRoute(topic, deadline)
    const count = route.view.policy.partitions
    const partitions = options.partitions ?? Array.from({ length: count }, (_, i) => i)
    return offsetsAt(this.cluster, route, partitions, at, deadline)
  }

  private deadline(options: CallOptions): Deadline {
    const { ports, settings } = this.cluster
    return deadlineIn(ports.clock, options.timeoutMs ?? settings.requestTimeoutMs, options.signal)
  }

  private async describe(name: string, deadline: Deadline): Promise<TopicView> {
    const what = `describing topic '${name}'`
    const request = { names: [name], brief: false }
    const answer = await this.cluster.call(what, describeTopics, request, deadline)
    const item = answer.topics[0]
    if (item === undefined) throw new EastGuardError('DECODE_FAILED', `${what}: no answer`)
    if ('error' in item) throw new EastGuardError(item.error, item.message)
    return item.topic
  }

  private async names(deadline: Deadline): Promise<readonly string[]> {
    const names: string[] = []
    for (let after = ''; ; after = names.at(-1) ?? '') {
      const request = { after, limit: LIST_TOPICS_MAX }
      const page = await this.cluster.call('listing topics', listTopics, request, deadline)
      for (const topic of page.topics) names.push(topic.name)
      if (!page.more || page.topics.length === 0) return names
    }
  }
}

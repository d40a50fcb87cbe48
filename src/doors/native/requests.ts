// Requests that are answered once: what each asks of the broker, and the frame that answers it. The hot ones (produce,
// consume) are not here.

import { EastGuardError } from '../../base/errors.ts'
import type { Broker } from '../../broker/broker.ts'
import { toEastGuardError } from '../../broker/errors.ts'
import { addPartitions } from '../../wire/native/add-partitions.ts'
import { allocateProducerId } from '../../wire/native/allocate-producer-id.ts'
import { alterTopic } from '../../wire/native/alter-topic.ts'
import { createTopic } from '../../wire/native/create-topic.ts'
import { deleteTopic } from '../../wire/native/delete-topic.ts'
import { describeCluster } from '../../wire/native/describe-cluster.ts'
import { describeTopics, type TopicDescription } from '../../wire/native/describe-topics.ts'
import { forceEnd } from '../../wire/native/force-end.ts'
import { readRequest, requestIdOf, responseFrame } from '../../wire/native/header.ts'
import {
  AT_EARLIEST,
  AT_LATEST,
  type ListedOffset,
  type ListOffsetsRequest,
  listOffsets,
} from '../../wire/native/list-offsets.ts'
import { type ListTopicsResponse, listTopics } from '../../wire/native/list-topics.ts'
import type { Message } from '../../wire/native/message.ts'
import { statusOf } from '../../wire/native/redirect.ts'
import { setBrokerRole } from '../../wire/native/set-broker-role.ts'

const NO_TOKEN = '0'.repeat(32)

type Handler = (broker: Broker, frame: Uint8Array) => Promise<Uint8Array>

function handler<Request, Response>(
  message: Message<Request, Response>,
  run: (broker: Broker, request: Request) => Response | Promise<Response>,
): [number, Handler] {
  return [
    message.operation,
    async (broker, frame) => {
      const response = await run(broker, readRequest(message, frame))
      return responseFrame(message, requestIdOf(frame), response)
    },
  ]
}

const HANDLERS: ReadonlyMap<number, Handler> = new Map([
  handler(createTopic, async (broker, { name, policy, token, ifNotExists }) => {
    const creationToken = token === NO_TOKEN ? '' : token
    const made = await broker.topics.create({ name, policy, creationToken, ifNotExists })
    const { topicId } = made.topic
    return { topicId, created: !made.existing, policy: made.topic.policy }
  }),
  handler(deleteTopic, async (broker, { name }) => {
    await broker.deleteTopic({ name })
    return {}
  }),
  handler(alterTopic, async (broker, { name, changes }) => {
    const { partitions, rangeMode, ranges, ...rest } = changes
    if (partitions !== undefined || rangeMode !== undefined || ranges !== undefined) {
      throw new EastGuardError(
        'INVALID_POLICY',
        'partitions, range mode and ranges are fixed when a topic is created',
        { hint: 'ADD_PARTITIONS raises the number of partitions' },
      )
    }
    return { policy: (await broker.topics.alter({ name }, rest)).policy }
  }),
  handler(addPartitions, async (broker, { name, partitions }) => {
    const topic = await broker.topics.addPartitions({ name }, partitions)
    return { partitions: topic.policy.partitions }
  }),
  handler(describeTopics, async (broker, { names, brief = false }) => ({
    topics: await Promise.all(names.map((name) => describe(broker, name, brief))),
  })),
  handler(listTopics, (broker, { after, limit }) => list(broker, after, limit)),
  handler(describeCluster, (broker) => broker.describeCluster()),
  handler(setBrokerRole, async (broker, { nodeId, role }) => ({
    role: await broker.setRole(nodeId, role),
  })),
  handler(forceEnd, (broker, request) => broker.forceEnd(request)),
  handler(listOffsets, async (broker, request) => ({
    partitions: await Promise.all(request.partitions.map((asked) => find(broker, asked))),
  })),
  handler(allocateProducerId, async (broker) => ({
    producerId: await broker.topics.allocateProducerId(),
    epoch: 0,
  })),
])

/** Undefined: the operation is none of these. */
export function handlerOf(operation: number): Handler | undefined {
  return HANDLERS.get(operation)
}

async function describe(broker: Broker, name: string, brief: boolean): Promise<TopicDescription> {
  try {
    const topic = await (brief ? broker.topics.findRoute({ name }) : broker.describeTopic({ name }))
    return { topic, brief }
  } catch (error) {
    const known = toEastGuardError(error)
    // Nobody knows yet: the whole request may be sent again.
    if (known.retriable) throw known
    return { error: known.code, message: known.message, name }
  }
}

function list(broker: Broker, after: string, limit: number): ListTopicsResponse {
  const found = broker.topics.list().filter((topic) => topic.name > after)
  return {
    more: found.length > limit,
    topics: found.slice(0, limit).map(({ name, topicId, policy, active }) => ({
      name,
      topicId,
      partitions: policy.partitions,
      ranges: active.length,
      replicationFactor: policy.replicationFactor,
    })),
  }
}

async function find(
  broker: Broker,
  { topicId, partition, at }: ListOffsetsRequest['partitions'][number],
): Promise<ListedOffset> {
  const place = at === AT_LATEST ? 'latest' : at === AT_EARLIEST ? 'earliest' : at
  try {
    return { error: undefined, ...(await broker.findOffset(topicId, partition, place)) }
  } catch (error) {
    return { ...statusOf(toEastGuardError(error)), offset: -1, timestamp: -1 }
  }
}

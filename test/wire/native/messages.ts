// Every message that has a pair of codecs, with arbitrary requests and responses: tests of the codecs run over this
// list, and one of them fails when an operation is missing here.

import fc from 'fast-check'
import { ERRORS, type ErrorCode } from '../../../src/base/errors.ts'
import type { NodeId, TopicId } from '../../../src/model/ids.ts'
import {
  ISSUE_KINDS,
  NODE_ROLES,
  type RangeView,
  type SegmentView,
  type TopicView,
} from '../../../src/model/metadata.ts'
import { ACKS, TIERS, type TopicPolicy } from '../../../src/model/policy.ts'
import { redirects } from '../../../src/model/redirect.ts'
import { MEMBER_STATES } from '../../../src/model/swim.ts'
import { addPartitions } from '../../../src/wire/native/add-partitions.ts'
import { allocateProducerId } from '../../../src/wire/native/allocate-producer-id.ts'
import { alterTopic } from '../../../src/wire/native/alter-topic.ts'
import { consume } from '../../../src/wire/native/consume.ts'
import { consumeClose, consumeCredit } from '../../../src/wire/native/consume-credit.ts'
import { createTopic } from '../../../src/wire/native/create-topic.ts'
import { deleteTopic } from '../../../src/wire/native/delete-topic.ts'
import { describeCluster } from '../../../src/wire/native/describe-cluster.ts'
import { describeTopics } from '../../../src/wire/native/describe-topics.ts'
import { fetch } from '../../../src/wire/native/fetch.ts'
import { forceEnd } from '../../../src/wire/native/force-end.ts'
import { hello } from '../../../src/wire/native/hello.ts'
import { listOffsets } from '../../../src/wire/native/list-offsets.ts'
import { listTopics } from '../../../src/wire/native/list-topics.ts'
import type { Message } from '../../../src/wire/native/message.ts'
import type { OperationName } from '../../../src/wire/native/operations.ts'
import type { Redirecting } from '../../../src/wire/native/redirect.ts'
import { setBrokerRole } from '../../../src/wire/native/set-broker-role.ts'

export interface MessageCase {
  readonly name: OperationName
  readonly message: Message<unknown, unknown>
  readonly request: fc.Arbitrary<unknown>
  /** Undefined: the operation has no response. */
  readonly response: fc.Arbitrary<unknown> | undefined
}

/** Ties a message to its arbitraries, and forgets the types so that all fit one list. */
function messageCase<Request, Response>(
  name: OperationName,
  message: Message<Request, Response>,
  request: fc.Arbitrary<Request>,
  response: fc.Arbitrary<Response> | undefined,
): MessageCase {
  return { name, message: message as Message<unknown, unknown>, request, response }
}

/** For comparing: bytes by content whatever kind of array holds them, objects whatever their prototype. */
export function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return [...value]
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
}

const u8 = fc.nat(0xff)
const u16 = fc.nat(0xffff)
const u32 = fc.nat(0xffff_ffff)
const i64 = fc.oneof(fc.maxSafeInteger(), fc.integer({ min: -2, max: 5 }))
const text = fc.string({ unit: 'binary', maxLength: 20 })
const hex = fc.stringMatching(/^[0-9a-f]{32}$/)
const topicId = hex as fc.Arbitrary<TopicId>
const nodeId = hex as fc.Arbitrary<NodeId>
const bytes = fc.uint8Array({ maxLength: 40 })
const errorCode = fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[]))
const maybeError = fc.option(errorCode, { nil: undefined })
const empty: fc.Arbitrary<object> = fc.constant({})

const policyArbitrary: fc.Arbitrary<TopicPolicy> = fc.record({
  partitions: i64,
  rangeMode: fc.constantFrom('auto' as const, 'fixed' as const),
  ranges: i64,
  replicationFactor: i64,
  minInsyncReplicas: i64,
  acksDefault: fc.constantFrom(...ACKS),
  retentionMs: i64,
  retentionBytes: i64,
  segmentBytes: i64,
  segmentEntries: i64,
  segmentMs: i64,
  maxMessageBytes: i64,
  tier: fc.constantFrom(...TIERS),
})

const changes: fc.Arbitrary<Partial<TopicPolicy>> = fc
  .tuple(policyArbitrary, fc.func(fc.boolean()))
  .map(([policy, keep]) => Object.fromEntries(Object.entries(policy).filter(([key]) => keep(key))))

const segment: fc.Arbitrary<SegmentView> = fc
  .tuple(
    fc.record({
      segment: i64,
      replicas: fc.array(nodeId, { maxLength: 3 }),
      firstOffsets: fc.array(i64, { maxLength: 4 }),
      openedAtMs: i64,
      digest: text,
    }),
    fc.option(fc.maxSafeNat(), { nil: undefined }),
    fc.option(fc.record({ from: fc.maxSafeNat() }), { nil: undefined }),
    fc.option(fc.record({ entries: fc.maxSafeNat(), bytes: fc.maxSafeNat() }), { nil: undefined }),
  )
  .map(([view, endEntry, tail, held]) => ({
    ...view,
    ...(endEntry === undefined ? { state: 'open' } : { state: 'sealed', endEntry }),
    ...(tail !== undefined && { tail }),
    ...(held !== undefined && { held }),
  }))

const range: fc.Arbitrary<RangeView> = fc.record({
  range: u32,
  state: fc.constantFrom('active' as const, 'sealed' as const),
  firstPartition: u32,
  endPartition: u32,
  segments: fc.array(segment, { maxLength: 3 }),
  parents: fc.array(u32, { maxLength: 2 }),
  children: fc.array(u32, { maxLength: 2 }),
})

export const topicArbitrary: fc.Arbitrary<TopicView> = fc.record({
  name: text,
  topicId,
  policy: policyArbitrary,
  createdAtMs: i64,
  version: i64,
  ranges: fc.array(range, { maxLength: 3 }),
  logStartOffsets: fc.array(i64, { maxLength: 4 }),
})

const redirect = fc.record({
  segment: fc.maxSafeInteger(),
  brokers: fc.array(fc.record({ nodeId, address: fc.record({ host: text, port: u16 }) }), {
    maxLength: 3,
  }),
})

/** An item with a redirect exactly where its error asks for one. */
export function redirecting<T extends Redirecting>(item: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc
    .tuple(item, redirect)
    .map(([each, to]) => (redirects(each.error) ? { ...each, redirect: to } : each))
}

export const MESSAGES: readonly MessageCase[] = [
  messageCase(
    'HELLO',
    hello,
    fc.record({ versionMin: u8, versionMax: u8, clientName: text, clusterId: text }),
    fc.record({
      version: u8,
      nodeId: text,
      clusterId: text,
      brokerVersion: text,
      frameBytesMax: u32,
      requestsInFlightMax: u32,
    }),
  ),
  messageCase(
    'CREATE_TOPIC',
    createTopic,
    fc.record({ name: text, token: hex, ifNotExists: fc.boolean(), policy: changes }),
    fc.record({ topicId, created: fc.boolean(), policy: policyArbitrary }),
  ),
  messageCase('DELETE_TOPIC', deleteTopic, fc.record({ name: text }), empty),
  messageCase(
    'ALTER_TOPIC',
    alterTopic,
    fc.record({ name: text, changes }),
    fc.record({ policy: policyArbitrary }),
  ),
  messageCase(
    'DESCRIBE_TOPICS',
    describeTopics,
    fc.record({ names: fc.array(text, { maxLength: 4 }), brief: fc.boolean() }),
    fc.record({
      topics: fc.array(
        fc.oneof(
          fc.record({ topic: topicArbitrary, brief: fc.constant(false) }),
          fc.record({ error: errorCode, message: text, name: text }),
        ),
        { maxLength: 3 },
      ),
    }),
  ),
  messageCase(
    'LIST_TOPICS',
    listTopics,
    fc.record({ after: text, limit: fc.nat(10_000) }),
    fc.record({
      more: fc.boolean(),
      topics: fc.array(
        fc.record({ name: text, topicId, partitions: u32, ranges: u32, replicationFactor: u8 }),
        { maxLength: 4 },
      ),
    }),
  ),
  messageCase(
    'DESCRIBE_CLUSTER',
    describeCluster,
    empty,
    fc.record({
      clusterId: text,
      topics: u32,
      ranges: u32,
      segments: u32,
      shards: u32,
      shardsLed: u32,
      underReplicated: u32,
      unavailable: u32,
      issues: fc.array(
        fc.record({
          topic: text,
          range: u32,
          segment: i64,
          kind: fc.constantFrom(...ISSUE_KINDS),
          why: text,
        }),
        { maxLength: 3 },
      ),
      brokers: fc.array(
        fc.record({
          nodeId,
          nodeNumber: u32,
          displayName: text,
          host: text,
          clientPort: u16,
          state: fc.constantFrom(...MEMBER_STATES),
          role: fc.constantFrom(...NODE_ROLES),
          hostLabel: text,
          rackLabel: text,
          shards: u32,
          leads: u32,
          version: text,
          diskTotalBytes: i64,
          diskFreeBytes: i64,
          diskFull: fc.boolean(),
        }),
        { maxLength: 3 },
      ),
    }),
  ),
  messageCase(
    'FETCH',
    fetch,
    fc.record({
      maxWaitMs: u32,
      minBytes: u32,
      maxBytes: u32,
      partitions: fc.array(fc.record({ topicId, partition: u32, offset: i64, maxBytes: u32 }), {
        maxLength: 3,
      }),
    }),
    fc.record({
      partitions: fc.array(
        fc.record({
          error: maybeError,
          highWatermark: i64,
          logStart: i64,
          batches: bytes.map((b) => (b.length === 0 ? [] : [b])),
        }),
        { maxLength: 3 },
      ),
    }),
  ),
  messageCase(
    'CONSUME',
    consume,
    fc.record({
      creditBytes: u32,
      keySpan: fc.option(fc.record({ least: u32, greatest: u32 }), { nil: undefined }),
      partitions: fc.array(fc.record({ topicId, partition: u32, offset: i64 }), { maxLength: 3 }),
    }),
    fc.record({
      partitions: fc.array(
        redirecting(fc.record({ error: maybeError, highWatermark: i64, logStart: i64 })),
        {
          maxLength: 3,
        },
      ),
    }),
  ),
  messageCase('CONSUME_CREDIT', consumeCredit, fc.record({ bytes: u32 }), undefined),
  messageCase('CONSUME_CLOSE', consumeClose, empty, undefined),
  messageCase(
    'LIST_OFFSETS',
    listOffsets,
    fc.record({
      partitions: fc.array(fc.record({ topicId, partition: u32, at: i64 }), { maxLength: 4 }),
    }),
    fc.record({
      partitions: fc.array(
        redirecting(fc.record({ error: maybeError, offset: i64, timestamp: i64 })),
        {
          maxLength: 4,
        },
      ),
    }),
  ),
  messageCase(
    'ALLOCATE_PRODUCER_ID',
    allocateProducerId,
    empty,
    fc.record({ producerId: i64, epoch: u16 }),
  ),
  messageCase(
    'SET_BROKER_ROLE',
    setBrokerRole,
    fc.record({ nodeId, role: fc.constantFrom(...NODE_ROLES) }),
    fc.record({ role: fc.constantFrom(...NODE_ROLES) }),
  ),
  messageCase(
    'FORCE_END',
    forceEnd,
    fc.record({ topic: text, range: u32, segment: i64, end: i64 }),
    fc.record({
      segment: i64,
      highWatermark: i64,
      answers: fc.array(
        fc.record({
          node: nodeId,
          end: i64,
          unsure: fc.option(
            text.filter((why) => why !== ''),
            { nil: undefined },
          ),
        }),
        { maxLength: 4 },
      ),
      silent: fc.array(nodeId, { maxLength: 4 }),
    }),
  ),
  messageCase(
    'ADD_PARTITIONS',
    addPartitions,
    fc.record({ name: text, partitions: u32 }),
    fc.record({ partitions: u32 }),
  ),
]

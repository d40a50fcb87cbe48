// The public face of the SDK: what a caller may pass, with units and defaults, what comes back, and what can be done.
// Declared here once and implemented in the files beside it; docs/reference/sdk.md explains it at length. Every error
// is an EastGuardError with a stable `code`, or a bug.

import type { Codec } from '../base/codec.ts'
import type { NodeId } from '../model/ids.ts'
import type { BrokerView, NodeRole, RangeIssue, TopicView } from '../model/metadata.ts'
import type { Acks, TopicPolicy } from '../model/policy.ts'
import type { Forceable } from '../model/segment-ends.ts'

/** Every call that waits takes these. */
export interface CallOptions {
  /** How long to wait in all, retries included. Default: the client's `requestTimeoutMs`. Rejects with TIMEOUT. */
  readonly timeoutMs?: number
  /** Rejects with ABORTED. */
  readonly signal?: AbortSignal
}

export interface ClientOptions {
  /** `host:port` of some brokers; the others are found through them. Default `['127.0.0.1:2921']`. */
  readonly seeds?: readonly string[]
  /** Shows in the broker's logs. Default 'eastguard-sdk'. */
  readonly clientName?: string
  /** How long one connection attempt may take, hello included. Default 5,000 ms. */
  readonly connectTimeoutMs?: number
  /** How long a call waits in all, and how long one request waits for its answer. Default 30,000 ms. */
  readonly requestTimeoutMs?: number
  /** The first pause after a failure; it doubles each time, with jitter. Default 50 ms. */
  readonly backoffMs?: number
  /** The longest pause between attempts. Default 1,000 ms. */
  readonly backoffMaxMs?: number
  /** Consumers read from replicas on brokers with the same `host_label` first. Default: the name of the machine. */
  readonly hostLabel?: string
  /** ... then from those with the same `rack_label`. Default: not known. */
  readonly rackLabel?: string
}

/** A key, a value or a header's value: bytes, or text that is sent as UTF-8. */
export type Data = string | Uint8Array

export interface ProducerRecord {
  readonly topic: string
  /** Decides the partition unless `partition` is given. Absent or null: no key. */
  readonly key?: Data | null | undefined
  /** Null is a value of its own (a deletion mark in compacted topics). */
  readonly value: Data | null
  readonly headers?: Readonly<Record<string, Data | null>> | undefined
  /** ms since 1970-01-01 UTC. Default: now. */
  readonly timestamp?: number | undefined
  readonly partition?: number | undefined
}

/** Where a record was stored. */
export interface RecordPlace {
  readonly partition: number
  /** -1 when it cannot be known: acks '0', or a retry of a batch that was stored long ago. */
  readonly offset: number
  /** The record's own, as its readers see it. */
  readonly timestamp: number
}

export interface ProducerOptions {
  /** '0': do not wait; '1': the leader is durable; 'all': every replica is. Default: the topic's `acksDefault`. */
  readonly acks?: Acks
  /** Default 'none'. */
  readonly codec?: Codec
  /** A batch is sent when it has this many bytes before compression. Default 1 MiB; never more than the topic takes. */
  readonly maxBatchBytes?: number
  /** ... or this many records. Default 20,000. */
  readonly maxBatchRecords?: number
  /** ... or when its first record has waited this long. Default 2 ms. 0: at the end of the turn. */
  readonly lingerMs?: number
  /** Each record is stored once however often a batch is sent again; order is kept. Default: true where acks is 'all'. */
  readonly idempotent?: boolean
  /** All records not yet settled together; beyond it `send()` waits. Default 32 MiB. */
  readonly bufferBytes?: number
  /** From `send()` to the answer, with all waiting and retrying. Default 120,000 ms. Rejects with TIMEOUT. */
  readonly deliveryTimeoutMs?: number
}

export interface SendOptions {
  /** Rejects with ABORTED: a record that is not yet in a batch is not sent; `detail.maybeStored` says which it was. */
  readonly signal?: AbortSignal
}

/** Where a consumer begins in each partition. */
export type ConsumeFrom =
  | 'earliest'
  | 'latest'
  /** The first record at or after this time, in ms since 1970-01-01 UTC. */
  | { readonly timestampMs: number }
  /** The same offset in every partition. */
  | { readonly offset: number }
  /** Offset by partition; partitions that are not named begin at `otherwise` (default 'earliest'). */
  | {
      readonly offsets: Readonly<Record<number, number>>
      readonly otherwise?: 'earliest' | 'latest'
    }

/** Records whose xxh32(key) lies in [least, greatest]; records without a key are in no span. */
export interface KeySpan {
  readonly least: number
  readonly greatest: number
}

export interface ConsumerOptions {
  readonly topic: string
  /** Default: all that the topic has when the consumer begins. */
  readonly partitions?: readonly number[]
  /** Default 'earliest'. */
  readonly from?: ConsumeFrom
  /** End at the end as it was when the consumer began. Default false: wait for more. */
  readonly stopAtEnd?: boolean
  readonly keySpan?: KeySpan
  /** How much is fetched ahead of the reader, at most (one batch more, since batches are not cut). Default 8 MiB. */
  readonly prefetchBytes?: number
  /** What to do when the next offset was removed by retention, or never existed. Default 'error'. */
  readonly onOffsetOutOfRange?: 'error' | 'earliest' | 'latest'
  /** How long to go on trying while the broker cannot be reached. Default 120,000 ms; Infinity is allowed. */
  readonly unavailableTimeoutMs?: number
  /** Ends the iteration with ABORTED. */
  readonly signal?: AbortSignal
}

export interface RecordHeader {
  readonly key: string
  readonly value: Uint8Array | null
}

/** Key, value and headers are views into a larger buffer: copy what you keep for long. */
export interface ConsumerRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestamp: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: readonly RecordHeader[]
}

/** What one batch held for this consumer. `for (const record of batch.records)`. */
/** Records of one batch as it is stored: all of it, or a part when it has many. */
export interface ConsumerBatch {
  readonly topic: string
  readonly partition: number
  readonly records: readonly ConsumerRecord[]
  /** The offset behind them: where the consumer goes on. */
  readonly nextOffset: number
  /** The end of the partition when the batch was sent. */
  readonly highWatermark: number
}

export type PolicyChanges = Partial<Omit<TopicPolicy, 'partitions' | 'ranges' | 'rangeMode'>>

export interface CreateTopicOptions extends CallOptions {
  /** Each absent field takes the broker's default. Replication: as many as there are brokers, at most 3. */
  readonly policy?: Partial<TopicPolicy>
  /** A topic of this name with an equal policy counts as created. Default false: TOPIC_EXISTS. */
  readonly ifNotExists?: boolean
}

/** Which offset `listOffsets` asks for. */
export type OffsetAt = 'earliest' | 'latest' | { readonly timestampMs: number }

export interface PartitionOffset {
  readonly partition: number
  /** For a time beyond the last record: the end of the partition. */
  readonly offset: number
  /** The record's timestamp when a time was asked for, otherwise -1. */
  readonly timestamp: number
}

export interface BrokerInfo extends BrokerView {
  readonly version: string
  readonly diskTotalBytes: number
  readonly diskFreeBytes: number
  /** It refuses records for want of space, as far as the broker that answers has heard. */
  readonly diskFull: boolean
}

export interface ClusterInfo {
  readonly clusterId: string
  /** The broker that answered. */
  readonly nodeId: string
  readonly brokerVersion: string
  readonly brokers: readonly BrokerInfo[]
  readonly topics: number
  readonly ranges: number
  readonly segments: number
  /** Parts of the metadata, and those of them that somebody is known to lead: fewer for a moment when a broker is lost. */
  readonly shards: number
  readonly shardsLed: number
  /** Ranges that have fewer replicas than they should, and those that cannot be written now. */
  readonly underReplicated: number
  readonly unavailable: number
  /** A few of these, the worst first. */
  readonly issues: readonly RangeIssue[]
}

export interface Client extends AsyncDisposable {
  producer(options?: ProducerOptions): Producer
  consumer(options: ConsumerOptions): Consumer
  admin(): Admin
  /** Closes its producers (which send what they hold), its consumers and its connections. */
  close(): Promise<void>
}

export interface Producer extends AsyncDisposable {
  /**
   * Resolves when the record is stored as `acks` asks. Waits while the buffer is full. Any number of callers may send
   * at once; records of one partition are stored in the order of the calls.
   *
   * Rejects with RECORD_TOO_LARGE, UNKNOWN_TOPIC, UNKNOWN_PARTITION, INVALID_ARGUMENT, TIMEOUT, ABORTED, CLOSED, or what the broker
   * answered. `detail.maybeStored` is true when the record may have been stored all the same.
   */
  send(record: ProducerRecord, options?: SendOptions): Promise<RecordPlace>
  /** As `send` for each, with one promise for all; rejects with the first failure once every record has settled. */
  sendBatch(
    records: readonly ProducerRecord[],
    options?: SendOptions,
  ): Promise<readonly RecordPlace[]>
  /** Sends what was accepted before, now; resolves when all of it has settled, either way. */
  flush(): Promise<void>
  /** Takes no more records, flushes, and resolves when every record has settled. */
  close(): Promise<void>
}

export interface Consumer extends AsyncIterable<ConsumerRecord>, AsyncDisposable {
  /** The same records a batch, or a part of a large one, at a time: less work for each. Use one or the other. */
  batches(): AsyncIterable<ConsumerBatch>
  /** Hands out nothing more of these partitions (default: all) until `resume`; nothing is fetched for them meanwhile. */
  pause(partitions?: readonly number[]): void
  resume(partitions?: readonly number[]): void
  /** Goes on from `offset` in that partition; what was fetched ahead is dropped. */
  seek(partition: number, offset: number): void
  /** The offset of the next record that will be handed out; undefined before the consumer has looked its start up. */
  position(partition: number): number | undefined
  /** The partitions that it reads; empty before its first `next()`. */
  partitions(): readonly number[]
  /** Ends the iteration, also one that waits. `break` out of `for await` does the same. */
  close(): Promise<void>
}

export interface CreatedTopic extends TopicView {
  /** False: it existed, with an equal policy (`ifNotExists`). */
  readonly created: boolean
}

export interface ForceableEnd extends Forceable {
  /** The open one. */
  readonly segment: number
}

export interface Admin {
  /** Rejects with TOPIC_EXISTS, INVALID_TOPIC_NAME, INVALID_POLICY, NOT_ENOUGH_BROKERS. A retry after a lost answer succeeds. */
  createTopic(name: string, options?: CreateTopicOptions): Promise<CreatedTopic>
  /** Rejects with UNKNOWN_TOPIC, TOPIC_PROTECTED. */
  deleteTopic(name: string, options?: CallOptions): Promise<void>
  alterTopic(name: string, changes: PolicyChanges, options?: CallOptions): Promise<TopicView>
  /** Raises the number of partitions to `partitions`; sends some keys to other partitions from then on. */
  addPartitions(name: string, partitions: number, options?: CallOptions): Promise<TopicView>
  /** Rejects with UNKNOWN_TOPIC. */
  describeTopic(name: string, options?: CallOptions): Promise<TopicView>
  /** Default: all topics. */
  describeTopics(names?: readonly string[], options?: CallOptions): Promise<readonly TopicView[]>
  /** Names, sorted. */
  listTopics(options?: CallOptions): Promise<readonly string[]>
  describeCluster(options?: CallOptions): Promise<ClusterInfo>
  /**
   * 'draining': the broker is given nothing, and what it has goes to others; 'member' ends that. 'removed': likewise, and it
   * never comes back. Resolves when that is decided; moving takes its time. Rejects with UNKNOWN_BROKER, and with
   * METADATA_CONFLICT for one that was removed.
   */
  setBrokerRole(nodeId: NodeId, role: NodeRole, options?: CallOptions): Promise<void>
  /**
   * What is known of the open segment of a range that cannot be written, since no replica surely has all of it. Rejects with
   * END_NOT_FORCED when nothing keeps it from being ended without an operator, or that is not known yet.
   */
  describeForcedEnd(topic: string, range: number, options?: CallOptions): Promise<ForceableEnd>
  /**
   * Ends that segment behind its first `end` entries, of which a replica must be there: what other replicas have beyond is lost,
   * acknowledged or not. Resolves when that is decided; the successor opens a moment later.
   */
  forceEnd(
    topic: string,
    range: number,
    at: { readonly segment: number; readonly end: number },
    options?: CallOptions,
  ): Promise<ForceableEnd>
  /** Default: all partitions. */
  listOffsets(
    topic: string,
    at: OffsetAt,
    options?: CallOptions & { readonly partitions?: readonly number[] },
  ): Promise<readonly PartitionOffset[]>
}

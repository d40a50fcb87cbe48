// A broker for the SDK's tests: everything in memory, nothing shared with the real one but the codecs. What goes wrong is
// decided by whoever holds it.

import assert from 'node:assert/strict'
import { toHex } from '../../../src/base/bytes.ts'
import { EastGuardError, type ErrorCode } from '../../../src/base/errors.ts'
import { readRecords, recordsSection } from '../../../src/model/batch/decode.ts'
import {
  baseSequence,
  batchCodec,
  batchFault,
  placeBatch,
  producerEpoch,
  producerId,
  recordCount,
} from '../../../src/model/batch/header.ts'
import { topicId } from '../../../src/model/ids.ts'
import { POLICY_DEFAULTS, type TopicPolicy } from '../../../src/model/policy.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import type { Address, Connection, Listener, Streams } from '../../../src/ports/streams.ts'
import { simCompute } from '../../../src/sim/ports/compute.ts'
import { allocateProducerId } from '../../../src/wire/native/allocate-producer-id.ts'
import { consumeCredit } from '../../../src/wire/native/consume-credit.ts'
import { createTopic } from '../../../src/wire/native/create-topic.ts'
import { deleteTopic } from '../../../src/wire/native/delete-topic.ts'
import { describeCluster } from '../../../src/wire/native/describe-cluster.ts'
import { describeTopics } from '../../../src/wire/native/describe-topics.ts'
import { FrameReader } from '../../../src/wire/native/frame-reader.ts'
import {
  errorFrame,
  operationOf,
  readRequest,
  requestIdOf,
  responseFrame,
} from '../../../src/wire/native/header.ts'
import { hello } from '../../../src/wire/native/hello.ts'
import { AT_EARLIEST, AT_LATEST, listOffsets } from '../../../src/wire/native/list-offsets.ts'
import { OPERATION } from '../../../src/wire/native/operations.ts'
import {
  PRODUCE_SLOTS_AT,
  type ProduceResult,
  produceAcks,
  produceCount,
  producedFrame,
  SLOT_HEAD_BYTES,
  slotBatchLength,
  slotGreatestKeyHash,
  slotLeastKeyHash,
  slotPartition,
} from '../../../src/wire/native/produce.ts'
import { FakePartition, type FakeTopic, judge, placed, refusal, topicById } from './fake-log.ts'
import { LoneRuling, type Ruling } from './fake-ruling.ts'
import { FakeStreams } from './fake-streams.ts'

/** Nothing is amiss. */
const WELL = { underReplicated: 0, unavailable: 0, issues: [] } as const
const FRAME_BYTES_MAX = 72 * 1024 * 1024
const NEEDS_OTHERS: ReadonlySet<number> = new Set([
  OPERATION.DESCRIBE_TOPICS,
  OPERATION.ALLOCATE_PRODUCER_ID,
])

/** What happens to one PRODUCE frame. */
export type Fate =
  | { readonly kind: 'answer'; readonly delayMs?: number }
  /** It stays where it was put, and may be replicated later. */
  | { readonly kind: 'too few replicas' }
  /** The connection breaks, before or after the batches were stored. */
  | { readonly kind: 'reset'; readonly stored: boolean }
  /** No answer ever comes. */
  | { readonly kind: 'silence'; readonly stored: boolean }

export class FakeBroker {
  readonly address: Address
  readonly topics: Map<string, FakeTopic>
  readonly streams: FakeStreams
  /** Decides over each PRODUCE frame, and over each of its batches: an error code refuses it. */
  fate: () => Fate = () => ({ kind: 'answer' })
  refuse: (batch: Uint8Array) => ErrorCode | undefined = () => undefined
  produceFrames = 0
  lookups = 0
  receivedBytes = 0
  /** From the others: nobody tells it what is true. */
  cutOff = false
  clusterId: string = 'c'.repeat(32)
  deletions = 0
  /** Connections taken, and creation tokens seen. */
  accepted = 0
  readonly tokens: string[] = []
  private readonly clock: Clock
  private readonly connections = new Set<Connection>()
  private readonly ruling: Ruling
  /** What came while it was deaf: as a process that was stopped, it reads all of it when it goes on. */
  private unheard: (() => void)[] | undefined
  private listener: Listener | undefined
  private nextTopic = 1

  constructor(clock: Clock, address: Address, ruling: Ruling = new LoneRuling()) {
    this.clock = clock
    this.address = address
    this.ruling = ruling
    this.topics = ruling.topics
    this.streams = new FakeStreams(ruling)
  }

  async start(streams: Streams): Promise<void> {
    this.listener = await streams.listen(this.address, (connection) => this.accept(connection))
  }

  /** The process is gone; what is stored stays. */
  async stop(): Promise<void> {
    await this.listener?.close()
    this.breakConnections()
  }

  /** Takes what comes and does nothing with it, as a process that is stopped. */
  setDeaf(deaf: boolean): void {
    const unheard = this.unheard ?? []
    this.unheard = deaf ? unheard : undefined
    if (!deaf) for (const serve of unheard) serve()
  }

  breakConnections(): void {
    for (const connection of this.connections) this.streams.forget(connection)
    for (const connection of this.connections) connection.destroy()
    this.connections.clear()
  }

  create(name: string, partitions: number, policy: Partial<TopicPolicy> = {}): FakeTopic {
    const topic: FakeTopic = {
      name,
      id: topicId((this.nextTopic++).toString(16).padStart(32, '0')),
      policy: {
        ...POLICY_DEFAULTS,
        replicationFactor: 1,
        minInsyncReplicas: 1,
        ...policy,
        partitions,
      },
      partitions: Array.from({ length: partitions }, () => new FakePartition()),
    }
    this.topics.set(name, topic)
    return topic
  }

  delete(name: string): void {
    const topic = this.topics.get(name)
    this.topics.delete(name)
    this.streams.pump()
    assert.ok(topic)
  }

  /** The values stored in a partition, by offset. */
  values(topic: FakeTopic, partition: number): string[] {
    const values: string[] = []
    for (const { batch } of (topic.partitions[partition] as FakePartition).batches) {
      assert.equal(batchCodec(batch), 'none')
      for (const record of readRecords(batch)) {
        assert.equal(record.offset, values.length)
        values.push(Buffer.from(record.value ?? []).toString())
      }
    }
    return values
  }

  async decompressed(batch: Uint8Array): Promise<Uint8Array> {
    return simCompute.decompress(batchCodec(batch) ?? 'none', recordsSection(batch), 2 ** 28)
  }

  private accept(connection: Connection): void {
    this.accepted++
    this.connections.add(connection)
    const frames = new FrameReader(FRAME_BYTES_MAX)
    connection.handle({
      onData: (chunk) => {
        this.receivedBytes += chunk.length
        frames.push(chunk, (frame) => {
          const copy = frame.slice()
          const serve = (): void => {
            if (this.connections.has(connection)) this.serve(connection, copy)
          }
          if (this.unheard === undefined) serve()
          else this.unheard.push(serve)
        })
      },
      onClose: () => this.forget(connection),
    })
  }

  private forget(connection: Connection): void {
    this.connections.delete(connection)
    this.streams.forget(connection)
  }

  private serve(connection: Connection, frame: Uint8Array): void {
    const id = requestIdOf(frame)
    const answer = (response: Uint8Array): void => {
      connection.write([response])
    }
    const operation = operationOf(frame)
    if (this.cutOff && NEEDS_OTHERS.has(operation)) {
      const error = new EastGuardError('METADATA_UNAVAILABLE', 'no leader answers')
      answer(errorFrame(operation, id, error))
      return
    }
    switch (operation) {
      case OPERATION.HELLO:
        answer(
          responseFrame(hello, id, {
            version: 1,
            nodeId: this.ruling.node,
            clusterId: this.clusterId,
            brokerVersion: 'fake',
            frameBytesMax: FRAME_BYTES_MAX,
            requestsInFlightMax: 1000,
          }),
        )
        return
      case OPERATION.DESCRIBE_TOPICS: {
        const { names } = readRequest(describeTopics, frame)
        if (names.length > 0) this.lookups++
        const topics = names.map((name) => {
          const topic = this.topics.get(name)
          if (topic !== undefined) return { topic: this.ruling.view(topic), brief: false }
          return { error: 'UNKNOWN_TOPIC' as const, message: `no '${name}'`, name }
        })
        answer(responseFrame(describeTopics, id, { topics }))
        return
      }
      case OPERATION.DESCRIBE_CLUSTER: {
        const brokers = this.ruling.brokers(this.address)
        const { clusterId } = this
        const counts = { topics: this.topics.size, ranges: 1, segments: 1, shards: 1, shardsLed: 1 }
        answer(responseFrame(describeCluster, id, { clusterId, ...counts, ...WELL, brokers }))
        return
      }
      case OPERATION.ALLOCATE_PRODUCER_ID:
        answer(
          responseFrame(allocateProducerId, id, {
            producerId: this.ruling.nextProducerId(),
            epoch: 0,
          }),
        )
        return
      case OPERATION.CREATE_TOPIC: {
        const { name, token } = readRequest(createTopic, frame)
        const topic = this.topics.get(name) ?? this.create(name, 4)
        this.tokens.push(token)
        const { policy } = topic
        if (this.fate().kind === 'answer')
          answer(responseFrame(createTopic, id, { topicId: topic.id, created: true, policy }))
        else this.drop(connection)
        return
      }
      case OPERATION.DELETE_TOPIC: {
        const { name } = readRequest(deleteTopic, frame)
        if (!this.topics.has(name)) {
          answer(errorFrame(OPERATION.DELETE_TOPIC, id, new EastGuardError('UNKNOWN_TOPIC', name)))
          return
        }
        this.delete(name)
        this.deletions++
        // Its answer is lost when the caller wants it so: see `fate`.
        if (this.fate().kind === 'answer') answer(responseFrame(deleteTopic, id, {}))
        else this.drop(connection)
        return
      }
      case OPERATION.LIST_OFFSETS:
        this.listOffsets(frame, answer)
        return
      case OPERATION.PRODUCE:
        this.produce(connection, frame)
        return
      case OPERATION.CONSUME:
        this.streams.open(connection, frame)
        return
      case OPERATION.CONSUME_CREDIT:
        this.streams.grant(connection, id, readRequest(consumeCredit, frame).bytes)
        return
      case OPERATION.CONSUME_CLOSE:
        this.streams.close(connection, id)
        return
      default:
        assert.fail(`the fake broker does not know operation ${operation}`)
    }
  }

  private drop(connection: Connection): void {
    this.forget(connection)
    connection.destroy()
  }

  get openStreams(): number {
    return this.streams.size
  }

  get pushedBytes(): number {
    return this.streams.pushedBytes
  }

  private byId(id: string): FakeTopic | undefined {
    return topicById(this.topics, id)
  }

  private listOffsets(frame: Uint8Array, answer: (response: Uint8Array) => void): void {
    const request = readRequest(listOffsets, frame)
    const partitions = request.partitions.map(({ topicId: id, partition, at }) => {
      const topic = this.byId(id)
      const found = topic?.partitions[partition]
      if (topic === undefined || found === undefined) {
        return { error: 'UNKNOWN_TOPIC' as const, offset: -1, timestamp: -1 }
      }
      const refused = this.ruling.notLeader(topic, partition)
      if (refused !== undefined) return { ...refused, offset: -1, timestamp: -1 }
      if (at === AT_EARLIEST) return { error: undefined, offset: found.start, timestamp: -1 }
      if (at === AT_LATEST) return { error: undefined, offset: found.end, timestamp: -1 }
      for (const { batch } of found.batches) {
        for (const { timestamp, offset } of readRecords(batch))
          if (timestamp >= at) return { error: undefined, offset, timestamp }
      }
      return { error: undefined, offset: -1, timestamp: -1 }
    })
    answer(responseFrame(listOffsets, requestIdOf(frame), { partitions }))
  }

  private produce(connection: Connection, frame: Uint8Array): void {
    this.produceFrames++
    const fate = this.fate()
    const count = produceCount(frame)
    const touched: FakePartition[] = []
    const results: ProduceResult[] = []
    let at = PRODUCE_SLOTS_AT
    for (let i = 0; i < count; i++) {
      const id = toHex(frame.subarray(at, at + 16))
      const length = slotBatchLength(frame, at)
      const batch = frame.slice(at + SLOT_HEAD_BYTES, at + SLOT_HEAD_BYTES + length)
      const topic = this.byId(id)
      const number = slotPartition(frame, at)
      const partition = topic?.partitions[number]
      const refused = topic === undefined ? undefined : this.ruling.notLeader(topic, number)
      if (topic === undefined || partition === undefined) results.push(refusal('UNKNOWN_TOPIC'))
      else if (refused !== undefined) results.push({ ...refusal(refused.error), ...refused })
      else {
        touched.push(partition)
        partition.unanswered++
        partition.unansweredMost = Math.max(partition.unansweredMost, partition.unanswered)
        if (!('stored' in fate) || fate.stored) {
          const hashes = [slotLeastKeyHash(frame, at), slotGreatestKeyHash(frame, at)] as const
          const result = this.append(topic, partition, batch, hashes)
          const few = fate.kind === 'too few replicas' && result.error === undefined
          results.push(few ? refusal('NOT_ENOUGH_REPLICAS') : result)
        }
      }
      at += SLOT_HEAD_BYTES + length
    }
    const answered = (): void => {
      for (const partition of touched) partition.unanswered--
    }
    if (fate.kind === 'reset') {
      answered()
      this.drop(connection)
    } else if (fate.kind === 'silence') answered()
    else {
      const id = requestIdOf(frame)
      const acks = produceAcks(frame)
      const delayMs = fate.kind === 'answer' ? fate.delayMs : undefined
      this.clock.after(delayMs ?? 0, () => {
        answered()
        if (acks !== 0 && this.connections.has(connection))
          connection.write([producedFrame(id, results)])
      })
    }
  }

  private append(
    topic: FakeTopic,
    partition: FakePartition,
    batch: Uint8Array,
    [least, greatest]: readonly [number, number],
  ): ProduceResult {
    const fault = batchFault(batch, topic.policy.maxMessageBytes)
    if (fault !== undefined) return refusal(fault.code)
    const code = this.refuse(batch)
    if (code !== undefined) return refusal(code)
    const count = recordCount(batch)
    const id = producerId(batch)
    if (id >= 0) {
      const verdict = judge(partition, id, producerEpoch(batch), baseSequence(batch), count)
      if (typeof verdict !== 'undefined') return verdict
    }
    const baseOffset = partition.end
    partition.end += count
    if (id >= 0) {
      const memory = partition.producers.get(id)
      assert.ok(memory)
      memory.seen.push({ sequence: baseSequence(batch), count, baseOffset })
      if (memory.seen.length > 5) memory.seen.shift()
      memory.next = (baseSequence(batch) + count) % 2 ** 31
    }
    placeBatch(batch, baseOffset, 1)
    partition.batches.push({ baseOffset, count, batch, least, greatest })
    this.ruling.stored(this.streams)
    return placed(baseOffset)
  }
}

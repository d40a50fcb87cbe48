// A client that is no more than a socket and the codecs, so that a test can send whatever it likes.

import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { EastGuardError, type ErrorCode, errorCodeOf } from '../../../src/base/errors.ts'
import { BatchBuilder, NOT_IDEMPOTENT } from '../../../src/model/batch/encode.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import type { TopicPolicy } from '../../../src/model/policy.ts'
import { type ConsumeData, readConsumeData } from '../../../src/wire/native/consume-data.ts'
import { createTopic } from '../../../src/wire/native/create-topic.ts'
import { type FetchedPartition, fetch } from '../../../src/wire/native/fetch.ts'
import { FrameReader } from '../../../src/wire/native/frame-reader.ts'
import {
  operationOf,
  readError,
  readResponse,
  requestFrame,
  requestIdOf,
  statusOf,
} from '../../../src/wire/native/header.ts'
import { hello } from '../../../src/wire/native/hello.ts'
import type { Message } from '../../../src/wire/native/message.ts'
import { OPERATION } from '../../../src/wire/native/operations.ts'
import {
  ACKS_ALL,
  type ProduceResult,
  type ProduceSlot,
  produceFrame,
  readProduced,
} from '../../../src/wire/native/produce.ts'

export interface Idempotence {
  readonly producerId: number
  readonly producerEpoch: number
  readonly baseSequence: number
}

export function batchOf(
  values: readonly string[],
  idempotence: Idempotence = NOT_IDEMPOTENT,
  timestamp: number = 1000,
): Uint8Array {
  const builder = new BatchBuilder()
  for (const value of values) builder.append(null, Buffer.from(value), [], timestamp++)
  return builder.finish({ ...NOT_IDEMPOTENT, ...idempotence })
}

export function slotOf(topicId: TopicId, partition: number, batch: Uint8Array): ProduceSlot {
  return { topicId, partition, leastKeyHash: 0, greatestKeyHash: 0xffff_ffff, batch }
}

export class RawClient {
  readonly socket: Socket
  readonly pushes: ConsumeData[] = []
  /** Frames that answer nothing that was asked. */
  readonly strays: Uint8Array[] = []
  readonly closed: Promise<void>
  private readonly waiting = new Map<number, (frame: Uint8Array) => void>()
  private onPush: (() => void) | undefined
  private nextId = 1

  private constructor(socket: Socket) {
    this.socket = socket
    const reader = new FrameReader(72 * 1024 * 1024)
    socket.on('data', (chunk) => reader.push(chunk, (frame) => this.take(frame.slice())))
    socket.on('error', () => {})
    this.closed = new Promise((resolve) => {
      socket.once('close', () => resolve())
    })
  }

  static async connect(port: number): Promise<RawClient> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve).once('error', reject)
    })
    return new RawClient(socket)
  }

  /** Connected, and greeted. */
  static async ready(port: number): Promise<RawClient> {
    const client = await RawClient.connect(port)
    await client.ask(hello, { versionMin: 1, versionMax: 1, clientName: 'test', clusterId: '' })
    return client
  }

  private take(frame: Uint8Array): void {
    const asked = this.waiting.has(requestIdOf(frame))
    if (operationOf(frame) === OPERATION.CONSUME_DATA && !asked) {
      this.pushes.push(readConsumeData(frame))
      this.onPush?.()
      return
    }
    const waiting = this.waiting.get(requestIdOf(frame))
    if (waiting === undefined) this.strays.push(frame)
    else {
      this.waiting.delete(requestIdOf(frame))
      waiting(frame)
    }
  }

  id(): number {
    return this.nextId++
  }

  /** Resolves with the frame that answers the id; rejects when the connection ends first. */
  async answer(id: number): Promise<Uint8Array> {
    return await this.unlessLost(new Promise((resolve) => this.waiting.set(id, resolve)))
  }

  private async unlessLost<T>(coming: Promise<T>): Promise<T> {
    const lost = this.closed.then((): never => {
      throw new EastGuardError('CONNECTION_LOST', 'the connection ended before that came')
    })
    return await Promise.race([coming, lost])
  }

  async ask<Q, S>(message: Message<Q, S>, request: Q): Promise<S> {
    const id = this.id()
    const answer = this.answer(id)
    this.socket.write(requestFrame(message, 1, id, request))
    return readResponse(message, await answer)
  }

  /** The error code that answers a frame that was sent as it is. */
  async refusal(frame: Uint8Array, id: number): Promise<ErrorCode> {
    const answer = this.answer(id)
    this.socket.write(frame)
    const got = await answer
    assert.notEqual(statusOf(got), 0)
    assert.ok(readError(got).message.length > 0)
    return errorCodeOf(statusOf(got))
  }

  async createTopic(name: string, policy: Partial<TopicPolicy> = {}): Promise<TopicId> {
    const token = '0'.repeat(32)
    const made = await this.ask(createTopic, { name, token, ifNotExists: false, policy })
    return made.topicId
  }

  async produce(
    slots: readonly ProduceSlot[],
    acks: number = ACKS_ALL,
    timeoutMs: number = 5000,
  ): Promise<readonly ProduceResult[]> {
    const id = this.id()
    const answer = this.answer(id)
    this.socket.write(Buffer.concat(produceFrame(1, id, acks, timeoutMs, slots)))
    const frame = await answer
    if (statusOf(frame) !== 0) throw readError(frame)
    return readProduced(frame)
  }

  async send(topicId: TopicId, partition: number, ...values: string[]): Promise<number> {
    const [result] = await this.produce([slotOf(topicId, partition, batchOf(values))])
    if (result?.error !== undefined) throw new EastGuardError(result.error, result.message)
    return result?.baseOffset ?? -1
  }

  async fetch(
    topicId: TopicId,
    partition: number,
    offset: number,
    limits: { maxWaitMs?: number; minBytes?: number; maxBytes?: number } = {},
  ): Promise<FetchedPartition> {
    const { maxWaitMs = 0, minBytes = 1, maxBytes = 1024 * 1024 } = limits
    const answer = await this.ask(fetch, {
      maxWaitMs,
      minBytes,
      maxBytes,
      partitions: [{ topicId, partition, offset, maxBytes }],
    })
    return answer.partitions[0] as FetchedPartition
  }

  /** Resolves when as many pushes have come as `enough` wants; rejects when the connection ends first. */
  async pushed(enough: (pushes: readonly ConsumeData[]) => boolean): Promise<void> {
    while (!enough(this.pushes)) {
      const next = new Promise<void>((resolve) => {
        this.onPush = resolve
      })
      await this.unlessLost(next)
    }
  }

  close(): void {
    this.socket.destroy()
  }
}

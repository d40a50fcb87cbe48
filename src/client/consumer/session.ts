// One stream of one consumer from one broker: CONSUME with a first credit, pushes as they come, credit granted anew as
// the reader takes what was pushed. Grants are gathered, so that a small batch does not cost a frame of its own.

import { EastGuardError, ERRORS } from '../../base/errors.ts'
import type { TopicId } from '../../model/ids.ts'
import { redirectError } from '../../model/redirect.ts'
import { consume } from '../../wire/native/consume.ts'
import { consumeClose, consumeCredit } from '../../wire/native/consume-credit.ts'
import { type ConsumeData, readConsumeData } from '../../wire/native/consume-data.ts'
import { readResponse, requestFrame } from '../../wire/native/header.ts'
import { VERSION_MAX } from '../../wire/native/operations.ts'
import type { Redirecting } from '../../wire/native/redirect.ts'
import type { KeySpan } from '../api.ts'
import type { BrokerConnection, StreamHandler } from '../connection.ts'

export interface SessionPartition {
  readonly partition: number
  readonly offset: number
}

export interface SessionEvents {
  /** This partition is being streamed. */
  opened(partition: number): void
  pushed(partition: number, data: ConsumeData): void
  /** This partition is not streamed (any more); the others are. */
  partitionFailed(partition: number, error: EastGuardError): void
  /** The whole stream is over. */
  lost(error: EastGuardError): void
}

export class Session implements StreamHandler {
  private readonly connection: BrokerConnection
  private readonly topicName: string
  private readonly partitions: readonly SessionPartition[]
  private readonly creditBytes: number
  private readonly events: SessionEvents
  private requestId = 0
  private owedBytes = 0
  private over = false
  /** Still streamed, or to be. */
  private readonly live: Set<number>

  constructor(
    connection: BrokerConnection,
    topicName: string,
    partitions: readonly SessionPartition[],
    creditBytes: number,
    events: SessionEvents,
  ) {
    this.connection = connection
    this.topicName = topicName
    this.partitions = partitions
    this.creditBytes = creditBytes
    this.events = events
    this.live = new Set(partitions.map(({ partition }) => partition))
  }

  /** Of the broker. */
  get name(): string {
    return this.connection.name
  }

  /** `queuedBytes`: what streams before this one have pushed and nobody has taken yet. */
  open(
    topicId: TopicId,
    keySpan: KeySpan | undefined,
    queuedBytes: number,
    timeoutMs: number,
  ): void {
    const request = {
      creditBytes: Math.max(1, this.creditBytes - queuedBytes),
      keySpan,
      partitions: this.partitions.map(({ partition, offset }) => ({ topicId, partition, offset })),
    }
    const frame = requestFrame(consume, VERSION_MAX, 0, request)
    this.requestId = this.connection.call([frame], timeoutMs, {
      answered: (payload) => this.answered(payload),
      failed: (error) => this.lost(error),
    })
    if (!this.over) this.connection.attach(this.requestId, this)
  }

  private answered(payload: Uint8Array): void {
    if (this.over) return
    try {
      const response = readResponse(consume, payload)
      for (const [i, { partition }] of this.partitions.entries()) {
        const told = response.partitions[i]
        if (told?.error === undefined) this.events.opened(partition)
        else this.events.partitionFailed(partition, this.errorOf(told, partition))
      }
    } catch (error) {
      this.lost(asError(error))
    }
  }

  pushed(payload: Uint8Array): void {
    if (this.over) return
    try {
      const data = readConsumeData(payload)
      const place = this.partitions[data.index]
      if (place === undefined) {
        throw new EastGuardError('DECODE_FAILED', `a push for partition index ${data.index}`)
      }
      const { partition } = place
      if (data.error === undefined) this.events.pushed(partition, data)
      else this.events.partitionFailed(partition, this.errorOf(data, partition, data.nextOffset))
    } catch (error) {
      this.lost(asError(error))
    }
  }

  lost(error: EastGuardError): void {
    if (this.over) return
    this.close()
    this.events.lost(error)
  }

  /** The reader has taken so many bytes: the broker may push as many more. */
  taken(bytes: number): void {
    if (this.over) return
    this.owedBytes += bytes
    if (this.owedBytes * 4 < this.creditBytes) return
    const grant = { bytes: this.owedBytes }
    this.owedBytes = 0
    this.connection.tell(requestFrame(consumeCredit, VERSION_MAX, this.requestId, grant))
  }

  /** The broker streams this partition no more. */
  leave(partition: number): void {
    this.live.delete(partition)
    if (this.live.size === 0) this.close()
  }

  close(): void {
    if (this.over) return
    this.over = true
    this.connection.detach(this.requestId)
    this.connection.forget(this.requestId)
    this.connection.tell(requestFrame(consumeClose, VERSION_MAX, this.requestId, {}))
  }

  /** `nextOffset` is where reading can go on, where that is known. */
  private errorOf(
    { error, redirect }: Redirecting,
    partition: number,
    nextOffset: number = -1,
  ): EastGuardError {
    const code = error ?? 'INTERNAL'
    const { meaning } = ERRORS[code]
    const what = `consuming '${this.topicName}', partition ${partition}, from ${this.name}: ${meaning}`
    if (redirect !== undefined && (code === 'NOT_LEADER' || code === 'NOT_REPLICA')) {
      return redirectError(code, what, redirect)
    }
    const detail = { topic: this.topicName, partition }
    if (nextOffset < 0) return new EastGuardError(code, what, { detail })
    const message = `${what}; the next offset that can be read is ${nextOffset}`
    return new EastGuardError(code, message, { detail: { ...detail, nextOffset } })
  }
}

function asError(error: unknown): EastGuardError {
  if (error instanceof EastGuardError) return error
  return new EastGuardError('DECODE_FAILED', 'a push is malformed', { cause: error })
}

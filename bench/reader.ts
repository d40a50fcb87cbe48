// A consumer as lean as a client can be: it opens a stream, counts the bytes of batches that arrive, and grants credit
// for what it took. At the end of what was asked for it begins again, or stops.

import { connect, type Socket } from 'node:net'
import type { TopicId } from '../src/model/ids.ts'
import { consume } from '../src/wire/native/consume.ts'
import { consumeClose, consumeCredit } from '../src/wire/native/consume-credit.ts'
import { readConsumeData } from '../src/wire/native/consume-data.ts'
import { FrameReader } from '../src/wire/native/frame-reader.ts'
import { operationOf, requestFrame, requestIdOf } from '../src/wire/native/header.ts'
import { OPERATION, VERSION_MAX } from '../src/wire/native/operations.ts'
import { HELLO_FRAME } from './workload.ts'

const CREDIT_BYTES = 16 * 1024 * 1024

export interface ReaderOptions {
  readonly port: number
  readonly topicId: TopicId
  /** From where to where each partition is read; an infinite end follows the tail. */
  readonly partitions: readonly {
    readonly partition: number
    readonly from: number
    readonly end: number
  }[]
  readonly again: boolean
}

export class RawReader {
  bytes = 0
  readonly done: Promise<void>
  private readonly options: ReaderOptions
  private readonly socket: Socket
  private readonly frames = new FrameReader(80 * 1024 * 1024)
  private stream = 0
  private open = 0
  private readonly ended = new Set<number>()
  private finish: () => void = () => {}

  constructor(options: ReaderOptions) {
    this.options = options
    this.done = new Promise((resolve) => {
      this.finish = resolve
    })
    this.socket = connect({ port: options.port, host: '127.0.0.1', noDelay: true })
    this.socket.on('connect', () => {
      this.socket.write(HELLO_FRAME)
      this.begin()
    })
    this.socket.on('data', (chunk) => this.frames.push(chunk, (frame) => this.take(frame)))
    this.socket.on('error', () => this.finish())
  }

  stop(): void {
    this.socket.destroy()
    this.finish()
  }

  private begin(): void {
    this.stream++
    this.ended.clear()
    this.open = 0
    const { topicId, partitions } = this.options
    const request = {
      creditBytes: CREDIT_BYTES,
      keySpan: undefined,
      partitions: partitions.map(({ partition, from }) => ({ topicId, partition, offset: from })),
    }
    this.socket.write(requestFrame(consume, VERSION_MAX, this.stream, request))
  }

  private take(frame: Uint8Array): void {
    if (operationOf(frame) !== OPERATION.CONSUME_DATA || requestIdOf(frame) !== this.stream) return
    const data = readConsumeData(frame)
    this.bytes += data.batches.length
    this.open += data.batches.length
    const { end } = this.options.partitions[data.index] as { readonly end: number }
    if (data.nextOffset >= end) this.ended.add(data.index)
    if (this.ended.size === this.options.partitions.length) this.atEnd()
    else if (this.open >= CREDIT_BYTES / 4) {
      this.socket.write(requestFrame(consumeCredit, VERSION_MAX, this.stream, { bytes: this.open }))
      this.open = 0
    }
  }

  private atEnd(): void {
    this.socket.write(requestFrame(consumeClose, VERSION_MAX, this.stream, {}))
    if (this.options.again) this.begin()
    else this.stop()
  }
}

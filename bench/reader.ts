// A consumer as lean as a client can be, so that the broker and not the client is measured: it opens a stream, looks at
// the heads of pushes, counts the bytes of batches and leaves them where they are, and grants credit for what it took. At
// the end of what was asked for it begins again, or stops.

import { connect, type Socket } from 'node:net'
import type { TopicId } from '../src/model/ids.ts'
import { consume } from '../src/wire/native/consume.ts'
import { consumeClose, consumeCredit } from '../src/wire/native/consume-credit.ts'
import { CONSUME_DATA_HEAD_BYTES, readConsumeData } from '../src/wire/native/consume-data.ts'
import { LENGTH_BYTES, operationOf, requestFrame, requestIdOf } from '../src/wire/native/header.ts'
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
  /** The first bytes of a frame, its length field with them; the rest is only counted. */
  private readonly head = Buffer.alloc(CONSUME_DATA_HEAD_BYTES)
  private have = 0
  private left = 0
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
    this.socket.on('data', (chunk) => this.read(chunk))
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

  private read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.left === 0) at = this.readHead(chunk, at)
      const skipped = Math.min(this.left, chunk.length - at)
      this.left -= skipped
      at += skipped
      if (this.left > 0 || !this.headWhole) continue
      const bytes = this.frameBytes - this.have
      this.take(this.head.subarray(LENGTH_BYTES, this.have), bytes)
      this.have = 0
    }
  }

  private get frameBytes(): number {
    return LENGTH_BYTES + this.head.readUInt32BE(0)
  }

  private get headWhole(): boolean {
    if (this.have < LENGTH_BYTES) return false
    return this.have === Math.min(this.frameBytes, CONSUME_DATA_HEAD_BYTES)
  }

  private readHead(chunk: Buffer, from: number): number {
    let at = from
    while (at < chunk.length && !this.headWhole) this.head[this.have++] = chunk[at++] as number
    if (this.headWhole) this.left = this.frameBytes - this.have
    return at
  }

  private take(head: Uint8Array, batchBytes: number): void {
    if (operationOf(head) !== OPERATION.CONSUME_DATA || requestIdOf(head) !== this.stream) return
    const data = readConsumeData(head)
    this.bytes += batchBytes
    this.open += batchBytes
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

// The consumer as its users see it: an async iterable of records, or of batches, over a Feed. A record that is already
// here costs no wait; `position` moves as records are handed out, not as they come.

import type { Consumer, ConsumerBatch, ConsumerRecord } from '../api.ts'
import type { Cluster } from '../cluster.ts'
import { whole } from '../producer/settings.ts'
import { Feed, type FeedPartition, type Taken } from './feed.ts'
import type { ConsumerSettings } from './settings.ts'
import { type Unpacking, unpack } from './unpack.ts'

/** A batch that is being unpacked. */
interface Opened {
  readonly taken: Taken
  /** Undefined: it holds nothing, the partition only moves on. */
  readonly unpacking: Unpacking | undefined
}

/** Records of one batch on their way out. */
interface Unpacked {
  readonly from: FeedPartition
  readonly epoch: number
  readonly records: readonly ConsumerRecord[]
  /** Behind the last of them, or behind the batch. */
  readonly nextOffset: number
  readonly highWatermark: number
}

type Result<T> = IteratorResult<T, undefined>
const END: Result<never> = { done: true, value: undefined }

export class LogConsumer implements Consumer {
  private readonly cluster: Cluster
  private readonly settings: ConsumerSettings
  private readonly feed: Feed
  private readonly onClosed: () => void
  private opened: Opened | undefined
  private current: Unpacked | undefined
  private at = 0
  private last: Promise<unknown> = Promise.resolve()
  private busy = false

  constructor(cluster: Cluster, settings: ConsumerSettings, onClosed: () => void) {
    this.cluster = cluster
    this.settings = settings
    this.onClosed = onClosed
    this.feed = new Feed(cluster, settings)
  }

  [Symbol.asyncIterator](): AsyncIterator<ConsumerRecord, undefined> {
    return { next: () => this.nextRecord(), return: () => this.finish() }
  }

  batches(): AsyncIterable<ConsumerBatch> {
    return {
      [Symbol.asyncIterator]: () => ({
        next: () => this.inTurn(() => this.nextBatch()),
        return: () => this.finish(),
      }),
    }
  }

  pause(partitions?: readonly number[]): void {
    this.feed.setPaused(partitions, true)
  }

  resume(partitions?: readonly number[]): void {
    this.feed.setPaused(partitions, false)
  }

  seek(partition: number, offset: number): void {
    whole('partition', partition, 0, 0xffff_ffff)
    whole('offset', offset, 0, Number.MAX_SAFE_INTEGER)
    this.feed.seek(partition, offset)
  }

  position(partition: number): number | undefined {
    return this.feed.partitions.get(partition)?.position
  }

  partitions(): readonly number[] {
    return [...this.feed.partitions.keys()]
  }

  close(): Promise<void> {
    this.feed.close()
    this.opened = undefined
    this.onClosed()
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private async finish(): Promise<Result<never>> {
    await this.close()
    return END
  }

  private nextRecord(): Promise<Result<ConsumerRecord>> {
    if (!this.busy) {
      const value = this.recordAtHand()
      if (value !== undefined) return Promise.resolve({ done: false, value })
    }
    return this.inTurn(async () => {
      for (;;) {
        const value = this.recordAtHand()
        if (value !== undefined) return { done: false, value }
        const unpacked = await this.unpackNext()
        if (unpacked === undefined) return END
        this.current = unpacked
        this.at = 0
      }
    })
  }

  private recordAtHand(): ConsumerRecord | undefined {
    const { current } = this
    if (current === undefined) return undefined
    const { from, epoch, nextOffset } = current
    if (from.epoch === epoch) {
      const record = current.records[this.at]
      if (record !== undefined) {
        this.at++
        from.position = this.at === current.records.length ? nextOffset : record.offset + 1
        return record
      }
      from.position = nextOffset
    }
    this.current = undefined
    return undefined
  }

  private async nextBatch(): Promise<Result<ConsumerBatch>> {
    const unpacked = await this.unpackNext()
    if (unpacked === undefined) return END
    const { from, epoch, records, nextOffset, highWatermark } = unpacked
    if (from.epoch === epoch) from.position = nextOffset
    const { topic } = this.settings
    const { partition } = from
    return { done: false, value: { topic, partition, records, nextOffset, highWatermark } }
  }

  /** The next records for this reader, all of one batch. */
  private async unpackNext(): Promise<Unpacked | undefined> {
    for (;;) {
      this.opened ??= await this.openNext()
      const { opened } = this
      if (opened === undefined) return undefined
      const { taken, unpacking } = opened
      const { from, epoch, highWatermark } = taken
      // A seek or a pause meanwhile.
      if (from.epoch !== epoch) {
        this.opened = undefined
        continue
      }
      let records: readonly ConsumerRecord[] = []
      try {
        if (unpacking !== undefined) records = unpacking.next()
      } catch (error) {
        throw await this.failed(error)
      }
      const last = records.at(-1)
      const whole = unpacking === undefined || unpacking.done
      if (whole) this.opened = undefined
      const nextOffset = whole || last === undefined ? taken.nextOffset : last.offset + 1
      if (records.length > 0) return { from, epoch, records, nextOffset, highWatermark }
      if (whole) from.position = nextOffset
    }
  }

  private async openNext(): Promise<Opened | undefined> {
    let taken: Taken | undefined
    try {
      taken = await this.feed.take()
    } catch (error) {
      // What failed stays failed; its consumer is of no more use.
      this.onClosed()
      throw error
    }
    if (taken === undefined) {
      await this.close()
      return undefined
    }
    const { from, batch } = taken
    if (batch === undefined) return { taken, unpacking: undefined }
    const wanted = {
      topic: this.settings.topic,
      partition: from.partition,
      from: from.position,
      end: from.end,
      keySpan: this.settings.keySpan,
    }
    try {
      const unpacking = unpack(batch, wanted, this.cluster.ports.compute)
      return { taken, unpacking: unpacking instanceof Promise ? await unpacking : unpacking }
    } catch (error) {
      throw await this.failed(error)
    }
  }

  /** A damaged batch must not be passed over by whoever calls `next` again. */
  private async failed(error: unknown): Promise<unknown> {
    await this.close()
    return error
  }

  /** One after another, should somebody call `next` again before the last has come. */
  private inTurn<T>(run: () => Promise<T>): Promise<T> {
    this.busy = true
    const mine = this.last.then(run, run)
    this.last = mine
    const free = (): void => {
      if (this.last === mine) this.busy = false
    }
    mine.then(free, free)
    return mine
  }
}

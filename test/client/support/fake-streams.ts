// The consume streams of a fake broker.

import type { Connection } from '../../../src/ports/streams.ts'
import { consume } from '../../../src/wire/native/consume.ts'
import { consumeDataHead, consumeEndFrame } from '../../../src/wire/native/consume-data.ts'
import { readRequest, requestIdOf, responseFrame } from '../../../src/wire/native/header.ts'
import { type FakeTopic, topicById } from './fake-log.ts'
import type { Refused, Ruling } from './fake-ruling.ts'

interface Place {
  readonly topic: FakeTopic
  readonly partition: number
  offset: number
  over: boolean
}

interface Stream {
  readonly connection: Connection
  readonly requestId: number
  readonly span: { readonly least: number; readonly greatest: number } | undefined
  readonly places: (Place | undefined)[]
  credit: number
}

export class FakeStreams {
  /** Of batches, to consumers. */
  pushedBytes = 0
  private readonly ruling: Ruling
  private readonly streams = new Set<Stream>()

  constructor(ruling: Ruling) {
    this.ruling = ruling
  }

  get size(): number {
    return this.streams.size
  }

  /** Who reads a partition here, by how many streams. */
  readersOf(partition: number): number {
    let count = 0
    for (const { places } of this.streams) {
      if (places.some((place) => place?.partition === partition && !place.over)) count++
    }
    return count
  }

  open(connection: Connection, frame: Uint8Array): void {
    const request = readRequest(consume, frame)
    const stream: Stream = {
      connection,
      requestId: requestIdOf(frame),
      span: request.keySpan,
      places: [],
      credit: request.creditBytes,
    }
    const partitions = request.partitions.map(({ topicId: id, partition, offset }) => {
      const topic = topicById(this.ruling.topics, id)
      const log = topic?.partitions[partition]
      const may: { end: number } | Refused =
        topic === undefined
          ? { error: 'UNKNOWN_TOPIC' }
          : this.ruling.reads(topic, partition, offset)
      const over = 'error' in may
      stream.places.push(topic && { topic, partition, offset, over })
      if ('error' in may) return { ...may, highWatermark: -1, logStart: -1 }
      return { error: undefined, highWatermark: may.end, logStart: log?.start ?? -1 }
    })
    connection.write([responseFrame(consume, stream.requestId, { partitions })])
    this.streams.add(stream)
    this.pumpOne(stream)
  }

  grant(connection: Connection, requestId: number, bytes: number): void {
    for (const stream of this.streams) {
      if (stream.connection !== connection || stream.requestId !== requestId) continue
      stream.credit += bytes
      this.pumpOne(stream)
    }
  }

  close(connection: Connection, requestId: number): void {
    for (const stream of this.streams) {
      if (stream.connection === connection && stream.requestId === requestId) {
        this.streams.delete(stream)
      }
    }
  }

  forget(connection: Connection): void {
    for (const stream of this.streams) {
      if (stream.connection === connection) this.streams.delete(stream)
    }
  }

  pump(): void {
    for (const stream of this.streams) this.pumpOne(stream)
  }

  private pumpOne(stream: Stream): void {
    for (const [index, place] of stream.places.entries()) {
      // Behind the end of a segment another rule may hold.
      for (let from = -1; place !== undefined && !place.over && from !== place.offset; ) {
        from = place.offset
        this.pumpPlace(stream, index, place)
      }
    }
  }

  private pumpPlace(stream: Stream, index: number, place: Place): void {
    const { topic, partition } = place
    const gone = this.ruling.topics.get(topic.name) !== topic
    const may: { end: number } | Refused = gone
      ? { error: 'UNKNOWN_TOPIC' }
      : this.ruling.reads(topic, partition, place.offset)
    if ('error' in may) {
      place.over = true
      stream.connection.write([consumeEndFrame(stream.requestId, index, -1, may)])
    } else this.push(stream, index, place, may.end)
  }

  private push(stream: Stream, index: number, place: Place, end: number): void {
    const log = place.topic.partitions[place.partition]
    const { requestId, span } = stream
    while (stream.credit > 0 && log !== undefined) {
      const next = log.batches.find((b) => b.baseOffset + b.count > place.offset)
      if (next === undefined || next.baseOffset + next.count > end) break
      place.offset = next.baseOffset + next.count
      const wanted =
        span === undefined || (next.least <= span.greatest && next.greatest >= span.least)
      const bytes = wanted ? next.batch.length : 0
      stream.credit -= bytes
      this.pushedBytes += bytes
      const { offset } = place
      const head = consumeDataHead(requestId, undefined, index, end, log.start, offset, bytes)
      stream.connection.write(wanted ? [head, next.batch.slice()] : [head])
    }
  }
}

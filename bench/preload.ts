// Fills a topic with the same batch, evenly over its partitions, as fast as the broker takes it.

import { connect } from 'node:net'
import type { TopicId } from '../src/model/ids.ts'
import { FrameReader } from '../src/wire/native/frame-reader.ts'
import { operationOf, statusOf } from '../src/wire/native/header.ts'
import { OPERATION, VERSION_MAX } from '../src/wire/native/operations.ts'
import { ACKS_ALL, produceFrame, readProduced } from '../src/wire/native/produce.ts'
import { HELLO_FRAME } from './workload.ts'

const IN_FLIGHT = 16

/** Resolves when every batch is acknowledged. */
export function preload(
  port: number,
  topicId: TopicId,
  partitions: number,
  batch: Uint8Array,
  batchesEach: number,
): Promise<void> {
  const total = partitions * batchesEach
  let sent = 0
  let answered = 0
  const frames = new FrameReader(1024 * 1024)
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  return new Promise((resolve, reject) => {
    const send = (): void => {
      const partition = sent % partitions
      const slot = { topicId, partition, leastKeyHash: 0, greatestKeyHash: 0xffffffff, batch }
      for (const part of produceFrame(VERSION_MAX, sent, ACKS_ALL, 60_000, [slot])) {
        socket.write(part)
      }
      sent++
    }
    socket.on('error', reject)
    socket.on('connect', () => socket.write(HELLO_FRAME))
    socket.on('data', (chunk) =>
      frames.push(chunk, (frame) => {
        if (operationOf(frame) === OPERATION.HELLO) {
          while (sent < Math.min(IN_FLIGHT, total)) send()
          return
        }
        const failed =
          statusOf(frame) !== 0 || readProduced(frame).some((r) => r.error !== undefined)
        if (failed) return void socket.destroy(new Error('a batch was refused'))
        answered++
        if (sent < total) send()
        if (answered === total) {
          socket.destroy()
          resolve()
        }
      }),
    )
  })
}

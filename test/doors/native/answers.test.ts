// What the door hands to a connection, seen from behind the socket.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuard } from '../../../src/app/connect.ts'
import { NativeConnection } from '../../../src/doors/native/connection.ts'
import { holeBatch } from '../../../src/model/batch/hole.ts'
import type { Connection, ConnectionHandlers } from '../../../src/ports/streams.ts'
import { describeTopics } from '../../../src/wire/native/describe-topics.ts'
import { fetch } from '../../../src/wire/native/fetch.ts'
import { readResponse, requestFrame } from '../../../src/wire/native/header.ts'
import { hello } from '../../../src/wire/native/hello.ts'
import { OPERATION } from '../../../src/wire/native/operations.ts'
import { type Running, runBroker, SETTINGS } from '../../broker/support/harness.ts'
import { RawClient } from '../../broker/support/raw-client.ts'

/** A connection that keeps the very buffers that it is given. */
class Kept implements Connection {
  readonly remote = { host: 'here', port: 1 }
  readonly queuedBytes = 0
  highWaterBytes = 1024 * 1024
  readonly writes: (readonly Uint8Array[])[] = []
  private handlers: ConnectionHandlers | undefined
  private onWrite: (() => void) | undefined

  handle(handlers: ConnectionHandlers): void {
    this.handlers = handlers
  }
  write(buffers: readonly Uint8Array[]): boolean {
    this.writes.push(buffers)
    this.onWrite?.()
    return true
  }
  /** Resolves with what is written in answer. */
  async ask(frame: Uint8Array): Promise<readonly Uint8Array[]> {
    const written = new Promise<void>((resolve) => {
      this.onWrite = resolve
    })
    this.handlers?.onData(frame)
    await written
    return this.writes.at(-1) ?? []
  }
  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {}
}

async function greeted(running: Running): Promise<Kept> {
  const kept = new Kept()
  new NativeConnection(running.broker, SETTINGS, kept, () => {})
  const versions = { versionMin: 1, versionMax: 1 }
  await kept.ask(requestFrame(hello, 1, 1, { ...versions, clientName: 'test', clusterId: '' }))
  return kept
}

test('a fetch answers with the very bytes of the batches, not with copies', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topicId = await client.createTopic('t', { partitions: 1 })
  for (const value of ['one', 'two', 'three']) await client.send(topicId, 0, value)
  client.close()
  const log = [...running.store.logs.values()][0]
  const stored = (log?.entries ?? []).map((entry) => entry.batch)
  assert.equal(stored.length, 3)

  const maxBytes = 1024 * 1024
  const partitions = [{ topicId, partition: 0, offset: 0, maxBytes }]
  const kept = await greeted(running)
  const request = { maxWaitMs: 0, minBytes: 1, maxBytes, partitions }
  const parts = await kept.ask(requestFrame(fetch, 1, 7, request))
  for (const batch of stored) {
    const same = parts.filter(
      (part) => part.buffer === batch.buffer && part.byteOffset === batch.byteOffset,
    )
    assert.equal(same.length, 1)
  }
  const answer = readResponse(fetch, Buffer.concat(parts).subarray(4))
  assert.equal(
    Buffer.compare(Buffer.concat(answer.partitions[0]?.batches ?? []), Buffer.concat(stored)),
    0,
  )
})

test('a consumer that comes to lost records is told where it can go on', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topicId = await client.createTopic('t', { partitions: 1 })
  for (const value of ['0', '1', '2', '3']) await client.send(topicId, 0, value)
  client.close()
  const [log] = running.store.logs.values()
  assert.ok(log !== undefined)
  for (const lost of [1, 2]) {
    const entry = log.entries[lost]
    assert.ok(entry !== undefined)
    log.entries[lost] = { ...entry, batch: holeBatch(1) }
  }
  // Holes come out of files: they are made while no broker runs.
  log.cold = true

  await using eastguard = new EastGuard({ seeds: [`127.0.0.1:${running.port}`] })
  const read = async (offset: number, values: string[]): Promise<void> => {
    const consumer = eastguard.consumer({ topic: 't', from: { offset }, stopAtEnd: true })
    for await (const { value } of consumer) values.push(Buffer.from(value ?? []).toString())
  }
  const before: string[] = []
  await assert.rejects(read(0, before), {
    code: 'RECORDS_LOST',
    message: `consuming 't', partition 0, from 127.0.0.1:${running.port}: the records at this offset were lost, and an operator has accepted that; the next offset that can be read is 3`,
    detail: { topic: 't', partition: 0, nextOffset: 3 },
  })
  const behind: string[] = []
  await read(3, behind)
  assert.deepEqual([before, behind], [['0'], ['3']])
})

test('a topic asked for briefly comes without old segments and offsets, asked for whole with them', async () => {
  await using running = await runBroker()
  const client = await RawClient.ready(running.port)
  const topicId = await client.createTopic('t', { partitions: 2, segmentEntries: 1 })
  for (let i = 0; i < 4; i++) await client.send(topicId, 0, `${i}`)
  const views = async (brief: boolean): Promise<[unknown, number, number]> => {
    const { topics } = await client.ask(describeTopics, { names: ['t'], brief })
    const [only] = topics
    assert.ok(only !== undefined && 'topic' in only)
    const { logStartOffsets, ranges } = only.topic
    return [only.brief, logStartOffsets.length, ranges[0]?.segments.length ?? 0]
  }
  assert.deepEqual(await views(true), [true, 0, 1])
  const [brief, starts, segments] = await views(false)
  assert.deepEqual([brief, starts], [false, 2])
  assert.ok(segments >= 4, `${segments} segments`)
  client.close()
})

test('every request of the protocol has somebody to answer it', async () => {
  await using running = await runBroker()
  const unanswered = new Set<number>([OPERATION.CONSUME_CREDIT, OPERATION.CONSUME_CLOSE])
  const kept = await greeted(running)
  for (const [name, operation] of Object.entries(OPERATION)) {
    // A body of no known message, so that most are refused; who refuses it has read it.
    const frame = Buffer.from([0, 0, 0, 9, operation, 1, 0, 0, 0, 9, 1, 1, 1])
    if (unanswered.has(operation)) continue
    const [answer] = await kept.ask(frame)
    assert.equal(answer?.[4], operation, name)
  }
})

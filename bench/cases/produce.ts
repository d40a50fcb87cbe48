// append: one broker, one partition, batches of 64 KiB, 16 in flight. tiny: 100-byte records, one per request, 256 in
// flight over 8 connections. Every acknowledgement comes after the sync.

import { run } from '../load.ts'
import { probeSyncedWrites } from '../probes/disk.ts'
import { latencies, type Result } from '../report.ts'
import { HELLO_FRAME, makeBatch, makeProduceFrame, withBroker } from '../workload.ts'

const APPEND_RECORD_BYTES = 1024
const APPEND_RECORDS = 62
const TINY_BYTES = 100
const PROBE_SECONDS = 2

export async function append(dir: string, seconds: number): Promise<Result[]> {
  const batch = makeBatch(APPEND_RECORDS, APPEND_RECORD_BYTES)
  const before = await probeSyncedWrites(dir, batch.length, PROBE_SECONDS)
  const result = await produce(dir, batch, 1, 16, seconds)
  const after = await probeSyncedWrites(dir, batch.length, PROBE_SECONDS)
  const mb = batch.length / 1e6
  const limit = ((before + after) / 2) * mb
  const value = result.perSecond * mb
  return [
    {
      name: 'append',
      case: '64 KiB batches, 16 in flight',
      unit: 'MB/s',
      value,
      limit,
      ratio: value / limit,
      ...latencies(result.latency),
      errors: result.errors,
    },
  ]
}

export async function tiny(dir: string, seconds: number): Promise<Result[]> {
  const result = await produce(dir, makeBatch(1, TINY_BYTES), 8, 256, seconds)
  return [
    {
      name: 'tiny',
      case: '100 B, 256 in flight, 8 connections',
      unit: 'acks/s',
      value: result.perSecond,
      ...latencies(result.latency),
      errors: result.errors,
    },
  ]
}

function produce(
  dir: string,
  batch: Uint8Array,
  connections: number,
  inFlight: number,
  seconds: number,
): ReturnType<typeof run> {
  return withBroker(dir, async ({ broker, client }) => {
    const topic = await client.admin().createTopic('bench', { policy: { partitions: 1 } })
    return run({
      port: broker.port,
      hello: HELLO_FRAME,
      frame: makeProduceFrame(topic.topicId, batch),
      connections,
      inFlight,
      seconds,
      warmupSeconds: 2,
    })
  })
}

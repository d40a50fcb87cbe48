// catchup: one consumer reads a long partition from offset 0 while producers go on at a fixed rate. Every byte has to come
// from a file and to cross loopback, so the limit is the slower of the two probes: a plain sequential read of the segment
// files (both find what the page cache has left of them) and loopback TCP. The producers' p99 is measured before and during. Of several
// brokers the consumer reads from the leader, whose segments are on all of them.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Histogram } from 'hdr-histogram-js'
import type { EastGuard } from '../../src/index.ts'
import { pause } from '../../test/support/time.ts'
import { openLoop } from '../open-loop.ts'
import { preload } from '../preload.ts'
import { probeSequentialRead } from '../probes/disk.ts'
import { probeLoopback } from '../probes/loopback.ts'
import { readInProcess } from '../reader-process.ts'
import { replicasOf } from '../replicas.ts'
import { latencies, type Result } from '../report.ts'
import { makeBatch, policyOn, withBrokers } from '../workload.ts'

const HISTORY_BYTES = Number(process.env['BENCH_HISTORY_BYTES'] ?? 4 * 1024 ** 3)
const TOPIC = 'bench'
const PRODUCED_PER_SECOND = 1000

export async function catchup(dir: string, seconds: number, brokers: number): Promise<Result[]> {
  const batch = makeBatch(62, 1024)
  const batches = Math.ceil(HISTORY_BYTES / batch.length)
  return withBrokers(dir, brokers, async (measured) => {
    const { client } = measured
    const policy = { partitions: 1, ...policyOn(measured) }
    const topic = await client.admin().createTopic(TOPIC, { policy })
    const [broker] = await replicasOf(measured, TOPIC)
    if (broker === undefined) throw new Error('the topic has no leader')
    await preload(broker.port, topic.topicId, 1, batch, batches)
    const fromFiles = await readAll(broker.dataDir)
    const limit = Math.min(fromFiles, await probeLoopback(batch.length, 2)) / 1e6
    const quiet = await produceUntil(client, pause(seconds * 1000))
    const reading = readInProcess({
      port: broker.port,
      topicId: topic.topicId,
      partitions: [{ partition: 0, from: 0, end: batches * 62 }],
      again: false,
    })
    const busy = await produceUntil(client, reading)
    const { bytes, ms } = await reading
    const value = bytes / (ms * 1000)
    const gib = (HISTORY_BYTES / 1024 ** 3).toFixed(1)
    return [
      {
        name: 'catchup',
        case: `${gib} GiB from offset 0`,
        unit: 'MB/s',
        value,
        limit,
        ratio: value / limit,
      },
      producer('producers alone', quiet),
      producer('producers beside it', busy),
    ]
  })
}

function producer(what: string, histogram: Histogram): Result {
  return {
    name: 'catchup',
    case: `${what}, ${PRODUCED_PER_SECOND}/s`,
    unit: 'acks',
    value: histogram.totalCount,
    ...latencies(histogram),
  }
}

/** Bytes per second over all segment files, one after another. */
async function readAll(dataDir: string): Promise<number> {
  const files = readdirSync(join(dataDir, 'topics'), { recursive: true, encoding: 'utf8' })
  const rates: number[] = []
  for (const file of files) {
    if (file.endsWith('.log')) rates.push(await probeSequentialRead(join(dataDir, 'topics', file)))
  }
  return rates.reduce((sum, rate) => sum + rate, 0) / rates.length
}

async function produceUntil(client: EastGuard, until: Promise<unknown>): Promise<Histogram> {
  const producer = client.producer({ lingerMs: 0 })
  const value = new Uint8Array(800)
  const send = (): Promise<unknown> => producer.send({ topic: TOPIC, value })
  const { latency } = await openLoop(PRODUCED_PER_SECOND, until, send)
  await producer.close()
  return latency
}

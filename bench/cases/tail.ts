// tail: what the cache holds, read again and again by one consumer, from one partition and from 64 in one range. The
// limit is loopback TCP with frames of the same size. `disk` is what the broker read from files meanwhile, of all it sent.

import { readFileSync } from 'node:fs'
import { pause } from '../../test/support/time.ts'
import { preload } from '../preload.ts'
import { probeLoopback } from '../probes/loopback.ts'
import { RawReader } from '../reader.ts'
import type { Result } from '../report.ts'
import { makeBatch, withBroker } from '../workload.ts'

/** Well within the cache (cache_bytes 64 MiB). */
const HELD_BYTES = 24 * 1024 * 1024

export async function tail(dir: string, seconds: number): Promise<Result[]> {
  const batch = makeBatch(62, 1024)
  const before = await probeLoopback(batch.length, 2)
  const results: Result[] = []
  for (const partitions of [1, 64]) results.push(await measure(dir, seconds, batch, partitions))
  const limit = (before + (await probeLoopback(batch.length, 2))) / 2 / 1e6
  return results.map((result) => ({ ...result, limit, ratio: result.value / limit }))
}

function measure(
  dir: string,
  seconds: number,
  batch: Uint8Array,
  partitions: number,
): Promise<Result> {
  return withBroker(dir, async ({ broker, client }) => {
    const topic = await client.admin().createTopic('bench', { policy: { partitions } })
    const each = Math.ceil(HELD_BYTES / batch.length / partitions)
    await preload(broker.port, topic.topicId, partitions, batch, each)
    const reader = new RawReader({
      port: broker.port,
      topicId: topic.topicId,
      partitions: Array.from({ length: partitions }, (_, partition) => ({
        partition,
        from: 0,
        end: each * 62,
      })),
      again: true,
    })
    await pause(1000)
    const [bytes, read, at] = [reader.bytes, readBytes(broker.child.pid), performance.now()]
    await pause(seconds * 1000)
    const value = (reader.bytes - bytes) / ((performance.now() - at) * 1000)
    const fromFiles = (readBytes(broker.child.pid) - read) / (reader.bytes - bytes)
    reader.stop()
    const what = partitions === 1 ? '1 partition' : `${partitions} partitions, 1 range`
    const disk = `${(fromFiles * 100).toFixed(1)} % from files`
    return { name: 'tail', case: `${what}, ${disk}`, unit: 'MB/s', value }
  })
}

/** Bytes that a process has read by system calls: files, and the few that clients send it. */
function readBytes(pid: number | undefined): number {
  const match = /rchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))
  return Number(match?.[1] ?? 0)
}

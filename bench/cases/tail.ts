// tail: what the cache holds, read again and again by one consumer, from one partition and from 64 in one range; of several
// brokers from the leader and from a follower. The limit is loopback TCP with frames of the same size. `disk` is what the
// broker read from files meanwhile, of all it sent.

import { readFileSync } from 'node:fs'
import type { BrokerProcess } from '../../test/support/broker-process.ts'
import { pause, within } from '../../test/support/time.ts'
import { preload } from '../preload.ts'
import { probeLoopback } from '../probes/loopback.ts'
import { RawReader } from '../reader.ts'
import { replicasOf } from '../replicas.ts'
import type { Result } from '../report.ts'
import { type Measured, makeBatch, policyOn, withBrokers } from '../workload.ts'

/** Well within the cache (cache_bytes 64 MiB). */
const HELD_BYTES = 24 * 1024 * 1024
const TOPIC = 'bench'
const RECORDS = 62
/** After the last acknowledgement followers hear how far that is. */
const HEARD_MS = 10_000

export async function tail(dir: string, seconds: number, brokers: number): Promise<Result[]> {
  const batch = makeBatch(RECORDS, 1024)
  const before = await probeLoopback(batch.length, 2)
  const results: Result[] = []
  for (const partitions of [1, 64]) {
    const run = (measured: Measured): Promise<Result[]> =>
      measure(measured, seconds, batch, partitions)
    results.push(...(await withBrokers(dir, brokers, run)))
  }
  const limit = (before + (await probeLoopback(batch.length, 2))) / 2 / 1e6
  return results.map((result) => ({ ...result, limit, ratio: result.value / limit }))
}

async function measure(
  measured: Measured,
  seconds: number,
  batch: Uint8Array,
  partitions: number,
): Promise<Result[]> {
  const policy = { partitions, ...policyOn(measured) }
  const { topicId } = await measured.client.admin().createTopic(TOPIC, { policy })
  const [leader, follower] = await replicasOf(measured, TOPIC)
  if (leader === undefined) throw new Error('the topic has no leader')
  const each = Math.ceil(HELD_BYTES / batch.length / partitions)
  await preload(leader.port, topicId, partitions, batch, each)
  const read = (from: BrokerProcess): Promise<{ value: number; fromFiles: number }> => {
    const reader = new RawReader({
      port: from.port,
      topicId,
      partitions: Array.from({ length: partitions }, (_, partition) => ({
        partition,
        from: 0,
        end: each * RECORDS,
      })),
      again: true,
    })
    return readFor(reader, from, seconds)
  }
  const what = partitions === 1 ? '1 partition' : `${partitions} partitions, 1 range`
  const results: Result[] = []
  for (const [who, broker] of [
    ['leader', leader],
    ['a follower', follower],
  ] as const) {
    if (broker === undefined) continue
    const { value, fromFiles } = await read(broker)
    const disk = `${(fromFiles * 100).toFixed(1)} % from files`
    results.push({ name: 'tail', case: `${what}, ${who}, ${disk}`, unit: 'MB/s', value })
  }
  return results
}

async function readFor(
  reader: RawReader,
  { child }: BrokerProcess,
  seconds: number,
): Promise<{ value: number; fromFiles: number }> {
  await within(HEARD_MS, 'the reader reads', () => reader.bytes > 0)
  await pause(1000)
  const [bytes, read, at] = [reader.bytes, readBytes(child.pid), performance.now()]
  await pause(seconds * 1000)
  const value = (reader.bytes - bytes) / ((performance.now() - at) * 1000)
  const fromFiles = (readBytes(child.pid) - read) / (reader.bytes - bytes)
  reader.stop()
  return { value, fromFiles }
}

/** Bytes that a process has read by system calls: files, and the few that clients send it. */
function readBytes(pid: number | undefined): number {
  const match = /rchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))
  return Number(match?.[1] ?? 0)
}

// What the benchmarks share: a broker on the disk that is measured, a topic, and encoded requests.

import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { EastGuard } from '../src/index.ts'
import { BatchBuilder, NOT_IDEMPOTENT } from '../src/model/batch/encode.ts'
import type { TopicId } from '../src/model/ids.ts'
import { requestFrame } from '../src/wire/native/header.ts'
import { hello } from '../src/wire/native/hello.ts'
import { VERSION_MAX, VERSION_MIN } from '../src/wire/native/operations.ts'
import { ACKS_ALL, produceFrame } from '../src/wire/native/produce.ts'
import { type BrokerProcess, spawnBroker } from '../test/support/broker-process.ts'
import { LocalCluster } from '../test/support/local-cluster.ts'

export const HELLO_FRAME: Uint8Array = requestFrame(hello, VERSION_MAX, 0, {
  versionMin: VERSION_MIN,
  versionMax: VERSION_MAX,
  clientName: 'bench',
  clusterId: '',
})

/** One batch of `records` records whose values have `valueBytes` bytes. */
export function makeBatch(records: number, valueBytes: number): Uint8Array {
  const builder = new BatchBuilder()
  const value = new Uint8Array(valueBytes).fill(0x5a)
  for (let i = 0; i < records; i++) builder.append(null, value, [], 1_700_000_000_000)
  return builder.finish(NOT_IDEMPOTENT)
}

/** A whole PRODUCE request with one batch for partition 0. */
export function makeProduceFrame(topicId: TopicId, batch: Uint8Array): Uint8Array {
  const slot = { topicId, partition: 0, leastKeyHash: 0, greatestKeyHash: 0xffffffff, batch }
  return Buffer.concat(produceFrame(VERSION_MAX, 0, ACKS_ALL, 30_000, [slot]))
}

const REPLICAS_MOST = 3

export interface Measured {
  readonly brokers: readonly BrokerProcess[]
  readonly client: EastGuard
}

/** Runs `measure` against a fresh broker whose data lies below `parent`, and removes everything afterwards. */
export function withBroker<T>(
  parent: string,
  measure: (measured: { readonly broker: BrokerProcess; readonly client: EastGuard }) => Promise<T>,
  flags: readonly string[] = [],
): Promise<T> {
  const one = ({ brokers, client }: Measured): Promise<T> =>
    measure({ broker: brokers[0] as BrokerProcess, client })
  return withBrokers(parent, 1, one, flags)
}

/** Likewise with `count` brokers: one as anybody would start it, several as a cluster that keeps each shard on all. */
export async function withBrokers<T>(
  parent: string,
  count: number,
  measure: (measured: Measured) => Promise<T>,
  flags: readonly string[] = [],
  nodeFlags: readonly string[] = [],
): Promise<T> {
  const all = ['--log-level=warn', ...flags]
  // With BENCH_PROFILE set each broker leaves a .cpuprofile in the working directory.
  const profile = profiled() ? ['--cpu-prof'] : []
  const { brokers, stop } = await (count === 1
    ? startOne(parent, all, [...nodeFlags, ...profile])
    : startCluster(parent, count, all, [...nodeFlags, ...profile]))
  const client = new EastGuard({ seeds: brokers.map(({ port }) => `127.0.0.1:${port}`) })
  try {
    return await measure({ brokers, client })
  } catch (error) {
    for (const broker of brokers) tellEnd(broker)
    throw error
  } finally {
    await client.close()
    await stop()
  }
}

/** What nobody would look for: that it ended by itself, and what it said last. */
function tellEnd(broker: BrokerProcess): void {
  const how = broker.child.exitCode ?? broker.child.signalCode
  if (how === null) return
  process.stderr.write(`a broker has ended by itself with ${how}:\n${broker.log()}\n`)
}

/** Of a topic whose segments are on as many of the brokers as may be. */
export function policyOn({ brokers }: Measured): {
  readonly replicationFactor: number
  readonly minInsyncReplicas: number
} {
  const replicationFactor = Math.min(REPLICAS_MOST, brokers.length)
  return { replicationFactor, minInsyncReplicas: Math.max(1, replicationFactor - 1) }
}

interface Started {
  readonly brokers: readonly BrokerProcess[]
  /** Leaves nothing behind. */
  readonly stop: () => Promise<unknown>
}

async function startOne(
  parent: string,
  flags: readonly string[],
  nodeFlags: readonly string[],
): Promise<Started> {
  const dataDir = await mkdtemp(join(parent, 'eastguard-bench-'))
  const broker = await spawnBroker({ dataDir, flags, nodeFlags })
  const stop = async (): Promise<void> => {
    broker.child.kill('SIGTERM')
    await broker.exited
    await rm(dataDir, { recursive: true, force: true })
  }
  try {
    await broker.ready()
  } catch (error) {
    await stop()
    throw error
  }
  return { brokers: [broker], stop }
}

async function startCluster(
  parent: string,
  count: number,
  flags: readonly string[],
  nodeFlags: readonly string[],
): Promise<Started> {
  const cluster = await LocalCluster.form({ parent, brokers: count, flags, nodeFlags })
  const brokers = cluster.brokers.flatMap(({ process }) => process ?? [])
  const stop = async (): Promise<void> => {
    // A profile is written by whoever ends in good order.
    if (profiled()) await Promise.all(cluster.brokers.map((broker) => broker.close('SIGTERM')))
    await cluster.close()
  }
  return { brokers, stop }
}

function profiled(): boolean {
  return process.env['BENCH_PROFILE'] !== undefined
}

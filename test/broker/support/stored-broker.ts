// A whole broker without doors on a disk in memory: data directory, journal, log store. Opened as a process opens them,
// and left as a killed process leaves them.

import assert from 'node:assert/strict'
import { fromHex, putI64 } from '../../../src/base/bytes.ts'
import { EastGuardError } from '../../../src/base/errors.ts'
import { prng } from '../../../src/base/prng.ts'
import { Broker } from '../../../src/broker/broker.ts'
import { openShardedLog } from '../../../src/broker/metadata/sharded-log.ts'
import type { MetadataLog } from '../../../src/broker/metadata/types.ts'
import { REPLICATION_DEFAULTS } from '../../../src/broker/options.ts'
import { ACKS_ALL } from '../../../src/broker/sinks.ts'
import { catalogOf } from '../../../src/broker/topics/catalog.ts'
import { settleRecovered, sweepStrays } from '../../../src/broker/topics/recovered.ts'
import type { Topic } from '../../../src/core/metadata/types.ts'
import { NO_PRODUCER, setBatchCrc } from '../../../src/model/batch/header.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import { POLICY_DEFAULTS } from '../../../src/model/policy.ts'
import type { Disk } from '../../../src/ports/disk.ts'
import { simCompute } from '../../../src/sim/ports/compute.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import { openDataDir } from '../../../src/storage/datadir/data-dir.ts'
import { JOURNAL_DIR, openJournal } from '../../../src/storage/journal/journal.ts'
import { openLogStore, WAL_DIR } from '../../../src/storage/log-store.ts'
import type { LogStore, LogStoreOptions } from '../../../src/storage/types.ts'
import { batchOf } from '../../storage/segment/rig.ts'
import {
  keptLog,
  type ManualClock,
  manualClock,
  seededRandom,
} from '../../storage/support/ports.ts'
import { controlAlone } from './alone.ts'

export const SMALL: LogStoreOptions = {
  walFileBytes: 20 * 1024,
  cacheBytes: 64 * 1024,
  unflushedBytesMax: 48 * 1024,
  blockBytes: 4096,
  flushAgeMs: 1000,
  walFilesMax: 3,
  reserveBytes: 0,
}
const JOURNAL_FILE_BYTES = 16 * 1024
const METADATA_SHARDS = 2

export interface StoredBroker {
  readonly broker: Broker
  readonly store: LogStore
  readonly metadata: MetadataLog
  readonly clock: ManualClock
  readonly log: ReturnType<typeof keptLog>
  /** Ends it in good order. */
  close(): Promise<void>
}

/** Rejects as a start does. `seed` differs from start to start. */
export async function openStored(
  disk: Disk,
  seed: number,
  options: Partial<LogStoreOptions> = {},
  onFailed: (error: Error) => void = (error) => {
    throw error
  },
): Promise<StoredBroker> {
  const clock = manualClock()
  const random = seededRandom(seed)
  const log = keptLog()
  const ports = { clock, random, log, compute: simCompute, metrics: simMetrics() }
  const dirs = { journalDir: JOURNAL_DIR, walDir: WAL_DIR }
  const dataDir = await openDataDir({
    disk,
    random,
    displayName: 'test',
    ...dirs,
  })
  try {
    const { identity } = dataDir
    const fileBytes = JOURNAL_FILE_BYTES
    const journal = await openJournal({ disk, ...ports, fileBytes, identity, onFailed })
    const metadata = openShardedLog({
      ports,
      journal,
      nodeId: dataDir.nodeId,
      founder: true,
      shards: METADATA_SHARDS,
      electionTimeoutMs: 1000,
      heartbeatMs: 200,
      timeoutMs: 5000,
      snapshotBytesLeast: JOURNAL_FILE_BYTES / 4,
      entriesKept: 8,
      send: () => {},
      others: () => [],
      onLead: () => {},
      onFailed,
    })
    await metadata.allFresh()
    let broker: Broker | undefined
    const store = await openLogStore({
      disk,
      ...ports,
      identity,
      catalog: catalogOf(metadata.state, dataDir.nodeId),
      options: { ...SMALL, ...options },
      listener: { roomAgain: () => broker?.roomAgain(), failed: onFailed },
    })
    const { nodeId } = dataDir
    const control = controlAlone({ ...ports, nodeId, metadata })
    const parts = { ports, metadata, store, space: () => disk.space(), control }
    await settleRecovered(parts)
    await dataDir.confirm('journal')
    await dataDir.confirm('wal')
    broker = new Broker(brokerOptions(dataDir.nodeId, 'cd'.repeat(16)), parts)
    await sweepStrays(parts)
    const running = broker
    const close = async (): Promise<void> => {
      await running.stop()
      await store.close()
      await metadata.close()
      await dataDir.close()
    }
    return { broker, store, metadata, clock, log, close }
  } catch (error) {
    await dataDir.close()
    throw error
  }
}

function brokerOptions(nodeId: Broker['options']['nodeId'], clusterId: string): Broker['options'] {
  return {
    nodeId,
    clusterId,
    displayName: 'test',
    version: '0',
    advertised: { host: '', port: 0 },
    others: () => [],
    hostLabel: 'test',
    rackLabel: '',
    shards: () => [],
    defaultPolicy: (replicationFactor) => ({
      ...POLICY_DEFAULTS,
      replicationFactor,
      minInsyncReplicas: 1,
    }),
    defaultReplicationFactor: 1,
    retentionCheckMs: 3_600_000,
    producerIdExpiryMs: 3_600_000,
    ...REPLICATION_DEFAULTS,
    boot: 1,
    heldBytesMax: 1024 * 1024,
  }
}

export async function makeTopic(
  { broker }: StoredBroker,
  name: string,
  policy: Partial<Topic['policy']>,
): Promise<TopicId> {
  const request = { name, policy, creationToken: '', ifNotExists: false }
  const { topic } = await broker.topics.create(request)
  return topic.topicId
}

/** A batch of no idempotent producer. */
export function plainBatch(
  bytes: number,
  records: number,
  timestamp: number,
  fill: number,
): Uint8Array {
  const batch = batchOf(bytes, records, timestamp, fill)
  putI64(batch, 43, NO_PRODUCER)
  setBatchCrc(batch)
  return batch
}

/** Resolves with the batch's offset when it is acknowledged. */
export function produce(
  { broker }: StoredBroker,
  topicId: TopicId,
  partition: number,
  batch: Uint8Array,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sink = {
      produced: (_slot: number, offset: number) => resolve(offset),
      refused: (_slot: number, code: EastGuardError['code'], message: string) =>
        reject(new EastGuardError(code, message)),
    }
    const id = fromHex(topicId)
    broker.produce(id, 0, partition, 0, 0xffffffff, batch, ACKS_ALL, 1000, sink, 0)
    broker.commit()
  })
}

/** A batch as it lies in the log, at its offset. */
export interface ReadBatch {
  readonly offset: number
  readonly records: number
  readonly hex: string
}

export interface ReadPartition {
  readonly batches: readonly ReadBatch[]
  /** Why reading ended before the high watermark. */
  readonly error: EastGuardError | undefined
  readonly end: number
}

/** Everything in [offset, until), as far as it can be read. Other errors than an EastGuardError are thrown. */
export async function readAll(
  { broker }: StoredBroker,
  topicId: TopicId,
  partition: number,
  offset: number = 0,
  until: number = Number.POSITIVE_INFINITY,
): Promise<ReadPartition> {
  const batches: ReadBatch[] = []
  let end = -1
  try {
    const cursor = broker.cursor(topicId, partition, offset)
    if (cursor instanceof EastGuardError) throw cursor
    end = await cursor.highWatermark()
    for (;;) {
      if (cursor.offset >= until) return { batches, error: undefined, end }
      const entries = await cursor.next(1 << 20)
      if (entries.length === 0) return { batches, error: undefined, end }
      cursor.passed(entries)
      for (const { baseOffset, recordCount, batch } of entries) {
        const hex = Buffer.from(batch).toString('hex')
        batches.push({ offset: baseOffset, records: recordCount, hex })
      }
    }
  } catch (error) {
    if (!(error instanceof EastGuardError)) throw error
    return { batches, error, end }
  }
}

/** What a topic holds, read while all was well. */
export interface Truth {
  readonly topicId: TopicId
  readonly name: string
  /** By partition: all batches, and where the next one goes. */
  readonly batches: readonly (readonly ReadBatch[])[]
  readonly ends: readonly number[]
}

export async function fill(
  running: StoredBroker,
  topicId: TopicId,
  partitions: number,
  batches: number,
): Promise<void> {
  const chance = prng(batches)
  for (let i = 0; i < batches; i++) {
    const batch = plainBatch(90 + chance.below(60), 1 + (i % 3), 1000 + i, i + 1)
    await produce(running, topicId, chance.below(partitions), batch)
  }
}

export async function truthOf(
  running: StoredBroker,
  name: string,
  topicId: TopicId,
  partitions: number,
): Promise<Truth> {
  const batches: (readonly ReadBatch[])[] = []
  const ends: number[] = []
  for (let p = 0; p < partitions; p++) {
    const read = await readAll(running, topicId, p)
    assert.equal(read.error, undefined)
    assert.ok(read.batches.length > 0)
    batches.push(read.batches)
    ends.push(read.end)
  }
  return { topicId, name, batches, ends }
}

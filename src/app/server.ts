// The composition root of a broker: real ports, the data directory, metadata, the log store, the broker and its doors, in
// the order in which each needs the one before. Ending goes the other way round.
//
//   HTTP (alive, not ready) ─> data dir (lock, identity) ─> journal ─> metadata ─> log store (recovery) ─> confirm
//     ─> broker ─> native door ─> ready
//
// The HTTP door opens first, so that a long recovery looks like what it is: alive and not ready.

import { Broker } from '../broker/broker.ts'
import { openJournaledLog } from '../broker/metadata/journaled-log.ts'
import type { MetadataLog } from '../broker/metadata/types.ts'
import { catalogOf } from '../broker/topics/catalog.ts'
import { settleRecovered, sweepStrays } from '../broker/topics/recovered.ts'
import { serveAdmin } from '../doors/admin/admin.ts'
import { NativeDoor } from '../doors/native/door.ts'
import { systemClock } from '../io/clock/system-clock.ts'
import { nodeCompute } from '../io/compute/node-compute.ts'
import { fileDisk } from '../io/disk/file-disk.ts'
import { nodeHttp } from '../io/http/node-http.ts'
import { promMetrics } from '../io/metrics/prom-metrics.ts'
import { systemRandom } from '../io/random/system-random.ts'
import { nodeStreams } from '../io/tcp/node-streams.ts'
import type { Disk } from '../ports/disk.ts'
import type { Log } from '../ports/log.ts'
import { type DataDir, openDataDir } from '../storage/datadir/data-dir.ts'
import { JOURNAL_DIR, type Journal, openJournal } from '../storage/journal/journal.ts'
import { openLogStore, WAL_DIR } from '../storage/log-store.ts'
import type { LogStore } from '../storage/types.ts'
import type { ResolvedConfig } from './config/keys.ts'
import { defaultPolicy } from './config/load.ts'
import type { BrokerHooks, RunningBroker } from './running.ts'

export interface ServerOptions {
  readonly config: ResolvedConfig
  readonly version: string
  readonly log: Log
  /** Node's own metrics too: one broker per process should say yes. */
  readonly processMetrics: boolean
  readonly hooks: BrokerHooks
  /** Stands between the broker and the real disk: for faults in tests. */
  readonly wrapDisk?: (disk: Disk) => Disk
}

/** Journal files are small: metadata is, and a snapshot frees them. */
const JOURNAL_FILE_BYTES = 8 * 1024 * 1024

/** What was opened, to be closed in the opposite order. */
class Opened {
  private readonly closers: (() => Promise<void>)[] = []

  add(close: () => Promise<void>): void {
    this.closers.push(close)
  }

  /** Closes all, whatever fails; rejects with the first failure. */
  async close(): Promise<void> {
    const failures: unknown[] = []
    for (let close = this.closers.pop(); close !== undefined; close = this.closers.pop()) {
      await close().catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }
}

/** Rejects with what openDataDir, openJournal or openLogStore reject with, or an Error that names an address. */
export async function startServer(options: ServerOptions): Promise<RunningBroker> {
  const opened = new Opened()
  try {
    return await start(options, opened)
  } catch (error) {
    await opened.close().catch(() => undefined)
    throw error
  }
}

async function start(options: ServerOptions, opened: Opened): Promise<RunningBroker> {
  const { config, log } = options
  const ports = {
    clock: systemClock({ keepAlive: false }),
    random: systemRandom(),
    compute: nodeCompute,
    log,
    metrics: promMetrics(options.processMetrics),
  }
  let notReady: string | undefined = 'the broker is starting'
  const http = await serveAdmin(
    nodeHttp,
    { host: config.host, port: config.httpPort },
    { metrics: ports.metrics, notReady: () => notReady },
  )
  opened.add(() => http.close())

  const realDisk = fileDisk(config.dataDir)
  const disk = options.wrapDisk?.(realDisk) ?? realDisk
  const dataDir = await openDataDir({
    disk,
    random: ports.random,
    displayName: config.displayName,
    journalDir: JOURNAL_DIR,
    walDir: WAL_DIR,
  })
  opened.add(() => dataDir.close())

  let broken = false
  // Set once there is something to stop; a failure during start-up makes the start reject.
  const onFailed = (error: Error): void => {
    if (broken) return
    broken = true
    notReady = 'the disk failed'
    log.error('the disk failed: the broker stops', { err: error })
    options.hooks.onFatal(error)
  }
  const common = { disk, clock: ports.clock, random: ports.random, log }
  const journal = await openJournal({
    ...common,
    fileBytes: JOURNAL_FILE_BYTES,
    identity: dataDir.identity,
    onFailed,
  })
  const metadata = await openMetadata(journal, log, onFailed)
  opened.add(() => metadata.close())
  let broker: Broker | undefined
  const store = await openStore(options, common, dataDir, metadata, {
    roomAgain: () => broker?.roomAgain(),
    failed: onFailed,
  })
  opened.add(() => store.close())
  const parts = { ports, metadata, store, space: () => disk.space() }
  await sweepStrays(parts)
  await settleRecovered(parts)
  await dataDir.confirm()

  let clientPort = config.clientPort
  broker = new Broker(
    {
      nodeId: dataDir.nodeId,
      clusterId: dataDir.clusterId,
      displayName: config.displayName,
      version: options.version,
      advertised: { host: config.advertiseHost, port: () => clientPort },
      defaultPolicy: (replicationFactor) => defaultPolicy(config, replicationFactor),
      defaultReplicationFactor: config.defaultReplicationFactor,
      retentionCheckMs: config.retentionCheckMs,
      producerIdExpiryMs: config.producerIdExpiryMs,
      heldBytesMax: config.unflushedBytesMax,
    },
    parts,
  )
  const running = broker
  opened.add(() => running.stop())
  const door = new NativeDoor(broker, {
    frameBytesMax: config.maxFrameBytes,
    connectionsMax: config.connectionsMax,
    requestsInFlightMax: config.requestsInFlightMax,
    connectionBytesMax: config.connectionBytesMax,
    answerBytesMax: config.answerBytesMax,
    helloTimeoutMs: config.helloTimeoutMs,
    frameTimeoutMs: config.frameTimeoutMs,
    answerTimeoutMs: config.answerTimeoutMs,
  })
  opened.add(() => door.stop(broken ? 0 : config.drainTimeoutMs))
  const client = await door.listen(nodeStreams, { host: config.host, port: config.clientPort })
  clientPort = client.port
  notReady = broken ? 'the disk failed' : undefined
  let stopped: Promise<void> | undefined
  return {
    client,
    http: http.address,
    nodeId: dataDir.nodeId,
    clusterId: dataDir.clusterId,
    stop: () => {
      notReady ??= 'the broker is stopping'
      stopped ??= opened.close()
      return stopped
    },
  }
}

/** The metadata log closes its journal, once there is one. */
async function openMetadata(
  journal: Journal,
  log: Log,
  onFailed: (error: Error) => void,
): Promise<MetadataLog> {
  try {
    return openJournaledLog({ journal, log, onFailed })
  } catch (error) {
    await journal.close()
    throw error
  }
}

function openStore(
  { config }: ServerOptions,
  common: Pick<Parameters<typeof openLogStore>[0], 'disk' | 'clock' | 'random' | 'log'>,
  dataDir: DataDir,
  metadata: MetadataLog,
  listener: Parameters<typeof openLogStore>[0]['listener'],
): Promise<LogStore> {
  return openLogStore({
    ...common,
    identity: dataDir.identity,
    catalog: catalogOf(metadata.state),
    listener,
    options: {
      walFileBytes: config.walFileBytes,
      walFilesMax: config.walFilesMax,
      cacheBytes: config.cacheBytes,
      unflushedBytesMax: config.unflushedBytesMax,
      blockBytes: config.blockBytes,
      flushAgeMs: config.flushAgeMs,
      reserveBytes: config.reserveBytes,
    },
  })
}

// A whole broker on the ports that it is given: the data directory, metadata, the log store, the broker and its doors, in
// the order in which each needs the one before. Ending goes the other way round. app/ gives it the machine's ports, sim/
// simulated ones; nothing here knows which.
//
//   HTTP (alive, not ready) ─> data dir (lock, identity) ─> client port ─> neighbours (cluster known)
//     ─> journal ─> metadata (up to date) ─> log store (recovery)
//     ─> confirmed ─> broker ─> native door ─> ready
//
// The HTTP door opens first, so that a long recovery looks like what it is: alive and not ready. All ports are taken before a
// cluster is founded or joined: a start that fails for want of one leaves no cluster of its own behind.

import { assert } from '../base/assert.ts'
import { Broker } from '../broker/broker.ts'
import type { ShardedLog } from '../broker/metadata/sharded-log.ts'
import type { MetadataLog } from '../broker/metadata/types.ts'
import type { BrokerParts } from '../broker/options.ts'
import { catalogOf } from '../broker/topics/catalog.ts'
import { settleRecovered, sweepStrays } from '../broker/topics/recovered.ts'
import { serveAdmin } from '../doors/admin/admin.ts'
import { NativeDoor } from '../doors/native/door.ts'
import type { NodeId } from '../model/ids.ts'
import { type DataDir, openDataDir } from '../storage/datadir/data-dir.ts'
import { JOURNAL_DIR, openJournal } from '../storage/journal/journal.ts'
import { openLogStore, WAL_DIR } from '../storage/log-store.ts'
import type { LogStore } from '../storage/types.ts'
import { Breakdown } from './breakdown.ts'
import { openControl } from './control.ts'
import { dataLinks } from './data.ts'
import { joinMetadata, openMetadata } from './metadata.ts'
import { openNeighbourhood } from './neighbourhood.ts'
import { Removal, segmentsHeld } from './removal.ts'
import type { BrokerHooks, RunningBroker, ServerPorts, ServerSettings } from './types.ts'

export interface ServerOptions {
  readonly ports: ServerPorts
  readonly settings: ServerSettings
  readonly version: string
  readonly hooks: BrokerHooks
  /** When it resolves, a start that waits for other brokers ends: it rejects with BROKER_STOPPED. */
  readonly stopping?: Promise<unknown>
}

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
  const { ports, settings } = options
  const { disk, log } = ports
  let notReady: string | undefined = 'the broker is starting'
  let removal: Removal | undefined
  // During start-up a failure of the disk makes the start reject, too.
  const breakdown = new Breakdown(log, options.hooks)
  const onFailed = (error: Error): void => breakdown.diskFailed(error)
  void options.stopping?.then(() => breakdown.stopStart())
  const http = await serveAdmin(
    ports.http,
    { host: settings.host, port: settings.httpPort },
    { metrics: ports.metrics, notReady: () => breakdown.reason ?? notReady ?? removal?.reason },
  )
  opened.add(() => http.close())

  const dataDir = await openDataDir({
    disk,
    random: ports.random,
    displayName: settings.displayName,
    journalDir: JOURNAL_DIR,
    walDir: WAL_DIR,
  })
  opened.add(() => dataDir.close())

  const door = new NativeDoor(ports, settings)
  opened.add(() => door.stop(0))
  const client = await door.listen({ host: settings.host, port: settings.clientPort })

  notReady = 'the broker looks for its cluster: none of join_seed_nodes has answered yet'
  const neighbourhood = await openNeighbourhood({
    ports,
    settings,
    dataDir,
    onFatal: (error) => breakdown.mustStop(error),
    onFailed,
    unlessEnded: (work) => breakdown.unlessEnded(work),
  })
  opened.add(() => neighbourhood.stop())
  const { cluster } = dataDir
  assert(cluster !== undefined, 'a broker with neighbours knows its cluster')
  notReady = 'the broker reads the metadata that it keeps'
  const journal = await openJournal({
    ...ports,
    fileBytes: settings.journalFileBytes,
    identity: dataDir.identity,
    mayHoldNothing: !cluster.founder,
    onFailed,
  })
  const metadataOptions = {
    ports,
    settings,
    dataDir,
    cluster,
    neighbourhood,
    journal,
    onFailed,
    onRefusedAsOld: (by: NodeId) => breakdown.refusedAsOld(dataDir, by),
  }
  const part = await openMetadata(metadataOptions)
  opened.add(async () => {
    // Said first, or a keeper that still counts on this broker would give back what it hands over.
    const left = neighbourhood.leave()
    await part.close()
    await left
  })
  const { log: metadata, cluster: address } = part
  notReady = 'the broker waits for its metadata: too few of the brokers that keep it answer'
  options.hooks.onMetadata?.({
    nodeId: dataDir.nodeId,
    cluster: address,
    shards: metadata.shards,
  })
  await breakdown.unlessEnded(joinMetadata(metadataOptions, metadata))
  const recovering = (step: string, done: number, of: number): void => {
    notReady = `the broker recovers its records: ${step}, ${done} of ${of}`
  }
  notReady = 'the broker recovers its records'
  let broker: Broker | undefined
  const store = await openStore(options, dataDir, metadata, {
    roomAgain: () => broker?.roomAgain(),
    recovering,
    failed: onFailed,
  })
  opened.add(() => store.close())
  const links = dataLinks(metadataOptions, (from, boot, message) =>
    broker?.received(from, boot, message),
  )
  if (links !== undefined) opened.add(() => links.stop())
  let control: ReturnType<typeof openControl> | undefined
  const parts: BrokerParts = {
    ports,
    metadata,
    store,
    space: () => disk.space(),
    ...(links !== undefined && { data: links }),
    control: (replicas) => (control = openControl(metadataOptions, part, store, replicas)),
  }
  await settleRecovered(parts, (done, of) => recovering('segments take their ends', done, of))
  await breakdown.unlessEnded(dataDir.confirm('wal'))

  broker = new Broker(
    {
      nodeId: dataDir.nodeId,
      clusterId: cluster.id,
      displayName: settings.displayName,
      hostLabel: settings.hostLabel,
      rackLabel: settings.membership?.rackLabel ?? '',
      shards: () => metadata.shards.places(),
      version: options.version,
      advertised: { host: settings.advertiseHost, port: client.port },
      defaultPolicy: settings.defaultPolicy,
      defaultReplicationFactor: settings.defaultReplicationFactor,
      retentionCheckMs: settings.retentionCheckMs,
      producerIdExpiryMs: settings.producerIdExpiryMs,
      heldBytesMax: settings.unflushedBytesMax,
      boot: dataDir.bootCount,
      others: () => neighbourhood.known(),
      segmentTiming: settings.segmentTiming,
      leaseSyncMs: settings.leaseSyncMs,
      hwStaleMs: settings.hwStaleMs,
    },
    parts,
  )
  const running = broker
  opened.add(() => running.stop())
  // Behind the broker, which hears from now on of what is deleted, and before others may stage here what is not known here yet.
  await sweepStrays(parts)
  opened.add(() => door.stop(breakdown.reason !== undefined ? 0 : settings.drainTimeoutMs))
  if (neighbourhood.data !== undefined) await links?.listen(neighbourhood.data.address)
  door.open(broker)
  neighbourhood.clientPort(client.port)
  removal = watchRemoval(options, dataDir, metadata)
  opened.add(async () => removal?.stop())
  // First of all others lead what this broker leads: no produce fails for it.
  opened.add(async () => {
    if (breakdown.reason === undefined) await control?.drain(settings.drainTimeoutMs)
  })
  notReady = undefined
  let stopped: Promise<void> | undefined
  return {
    client,
    http: http.address,
    cluster: address,
    data: neighbourhood.data?.address,
    shards: metadata.shards,
    nodeId: dataDir.nodeId,
    clusterId: cluster.id,
    stop: () => {
      notReady ??= 'the broker is stopping'
      stopped ??= opened.close()
      return stopped
    },
  }
}

/** Undefined when nobody would stop the broker. */
function watchRemoval(
  { ports, hooks }: ServerOptions,
  { nodeId }: DataDir,
  { state, shards }: ShardedLog,
): Removal | undefined {
  if (hooks.onRemoved === undefined) return undefined
  return new Removal({
    clock: ports.clock,
    log: ports.log,
    removed: () => state.nodes.get(nodeId)?.role === 'removed',
    held: () => {
      const kept = shards.places().filter(({ members }) => members.includes(nodeId))
      return kept.length + segmentsHeld(state.topics.values(), nodeId)
    },
    onEmpty: () => hooks.onRemoved?.(),
  })
}

function openStore(
  { ports, settings }: ServerOptions,
  dataDir: DataDir,
  metadata: MetadataLog,
  listener: Parameters<typeof openLogStore>[0]['listener'],
): Promise<LogStore> {
  return openLogStore({
    ...ports,
    identity: dataDir.identity,
    catalog: catalogOf(metadata.state, dataDir.nodeId),
    listener,
    options: settings,
  })
}

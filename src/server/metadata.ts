// The metadata of a starting broker: links to the others, its part in the shards, and then waiting until it knows all that
// anybody was told, so that what it finds on its disk can be judged by that.
//
//   journal begun ─> confirmed ─> listen ─> shards ─> up to date in every shard ─> it has its number

import { EastGuardError } from '../base/errors.ts'
import { openShardedLog, type ShardedLog } from '../broker/metadata/sharded-log.ts'
import { Peers } from '../broker/peers/peers.ts'
import { PEERS_SETTINGS } from '../broker/peers/settings.ts'
import type { NodeId } from '../model/ids.ts'
import type { StartMemory } from '../model/starts.ts'
import { DiskError } from '../ports/disk.ts'
import type { Address } from '../ports/streams.ts'
import type { DataDir } from '../storage/datadir/data-dir.ts'
import type { Journal } from '../storage/journal/journal.ts'
import type { ServerPorts, ServerSettings } from './types.ts'

/** Entries that stay in memory behind a snapshot, of each shard. */
const ENTRIES_KEPT = 256
/** A shard's snapshot is due when it has written such a part of a journal file, at the least. */
const SNAPSHOT_SHARE = 1 / 16

export interface MetadataOptions {
  readonly ports: ServerPorts
  readonly settings: ServerSettings
  readonly dataDir: DataDir
  readonly journal: Journal
  onFailed(error: Error): void
  /** Another broker has met a start of this node that this data directory does not know. */
  onRefusedAsOld(by: NodeId): void
}

export interface OpenedMetadata {
  readonly log: ShardedLog
  /** Where other brokers reach this one; undefined when it stays alone. */
  readonly cluster: Address | undefined
  close(): Promise<void>
}

/** Closes the journal when it fails, and from then on with the rest. */
export async function openMetadata(options: MetadataOptions): Promise<OpenedMetadata> {
  const { dataDir, journal, settings } = options
  let log: ShardedLog | undefined
  const peers = settings.cluster === undefined ? undefined : linksOf(options, () => log)
  const close = async (): Promise<void> => {
    await (log ?? journal).close()
    await peers?.stop()
  }
  try {
    await dataDir.confirm('journal')
    log = shardsOf(options, peers)
    const port = settings.cluster?.port ?? 0
    const listener = await peers?.listen({ host: settings.host, port })
    return { log, cluster: listener?.address, close }
  } catch (error) {
    await close()
    throw error
  }
}

function linksOf(options: MetadataOptions, log: () => ShardedLog | undefined): Peers {
  const { ports, settings } = options
  const { clusterId, nodeId, starts } = options.dataDir
  return new Peers({
    ports,
    identity: { clusterId, nodeId, starts },
    directory: {
      addressOf: (node) =>
        settings.cluster?.neighbours().find((one) => one.nodeId === node)?.cluster,
    },
    receive: (from, messages) => log()?.shards.receive(from, messages),
    settings: PEERS_SETTINGS,
    memory: memoryOf(options),
    onRefusedAsOld: (by) => options.onRefusedAsOld(by),
  })
}

function memoryOf(options: MetadataOptions): StartMemory {
  const { dataDir } = options
  return {
    met: (node) => dataDir.met(node),
    remember: async (node, start) => {
      try {
        await dataDir.remember(node, start)
      } catch (error) {
        // A full disk has room again one day, and who was not let in dials again.
        if (!(error instanceof DiskError && error.fault === 'full'))
          options.onFailed(error as Error)
        throw error
      }
    },
  }
}

function shardsOf(options: MetadataOptions, peers: Peers | undefined): ShardedLog {
  const { ports, settings, dataDir, journal } = options
  const { nodeId, founder, metadataShards } = dataDir
  const others = (): readonly NodeId[] => {
    const all = settings.cluster?.neighbours() ?? []
    return all.map((one) => one.nodeId).filter((node) => node !== nodeId)
  }
  return openShardedLog({
    ports,
    journal,
    nodeId,
    founder,
    shards: metadataShards,
    ...settings.metadataTiming,
    snapshotBytesLeast: settings.journalFileBytes * SNAPSHOT_SHARE,
    entriesKept: ENTRIES_KEPT,
    send: (to, messages) => {
      peers?.send(to, messages)
    },
    others,
    onFailed: (error) => options.onFailed(error),
  })
}

/** Resolves when this broker knows all that anybody was told, and has its number. Waits for a quorum of every shard. */
export async function joinMetadata(
  { ports, dataDir }: MetadataOptions,
  log: ShardedLog,
): Promise<void> {
  await log.allFresh()
  const { nodeId, clusterId, founder, metadataShards: shards } = dataDir
  if (founder && log.state.cluster === undefined) {
    const timeMs = ports.clock.wall()
    await insist(log, { kind: 'FoundCluster', clusterId, shards, timeMs })
  }
  if (!log.state.nodes.has(nodeId)) await insist(log, { kind: 'AddNode', nodeId })
}

/** For commands that may be given twice. */
async function insist(
  log: ShardedLog,
  command: Parameters<ShardedLog['propose']>[0],
): Promise<void> {
  for (;;) {
    try {
      const result = await log.propose(command)
      if (!result.ok) throw new EastGuardError(result.code, result.message)
      return
    } catch (error) {
      if (!(error instanceof EastGuardError) || !TRANSIENT.has(error.code)) throw error
    }
  }
}

const TRANSIENT: ReadonlySet<string> = new Set(['METADATA_UNAVAILABLE', 'TIMEOUT'])

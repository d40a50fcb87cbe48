// The metadata of a starting broker: links to the others, its part in the shards, and then waiting until it knows all that
// anybody was told, so that what it finds on its disk can be judged by that.
//
//   journal begun ─> confirmed ─> listen ─> shards ─> up to date in every shard ─> it has its number

import { EastGuardError } from '../base/errors.ts'
import { openShardedLog, type ShardedLog } from '../broker/metadata/sharded-log.ts'
import type { PeersOptions } from '../broker/peers/peers.ts'
import { Peers } from '../broker/peers/peers.ts'
import { PEERS_SETTINGS } from '../broker/peers/settings.ts'
import { Keeper } from '../broker/shards/keeper.ts'
import type { NodeId } from '../model/ids.ts'
import type { StartMemory } from '../model/starts.ts'
import type { Address } from '../ports/streams.ts'
import type { DataDir } from '../storage/datadir/data-dir.ts'
import type { NodeCluster } from '../storage/datadir/node-file.ts'
import type { Journal } from '../storage/journal/journal.ts'
import { isFull } from './disk-failure.ts'
import type { Neighbourhood } from './neighbourhood.ts'
import type { ServerPorts, ServerSettings } from './types.ts'

/** Entries that stay in memory behind a snapshot, of each shard. */
const ENTRIES_KEPT = 256
/** A shard's snapshot is due when it has written such a part of a journal file, at the least. */
const SNAPSHOT_SHARE = 1 / 16
/** A broker that stops gives so long to whoever is to lead its shards instead. */
const HAND_OVER_MS = 1500

export interface MetadataOptions {
  readonly ports: ServerPorts
  readonly settings: ServerSettings
  readonly dataDir: DataDir
  readonly cluster: NodeCluster
  readonly neighbourhood: Neighbourhood
  readonly journal: Journal
  onFailed(error: Error): void
  /** Another broker has met a start of this node that this data directory does not know. */
  onRefusedAsOld(by: NodeId): void
}

type Receive = PeersOptions['receive']

export interface OpenedMetadata {
  readonly log: ShardedLog
  /** Where other brokers reach this one; undefined when it stays alone. */
  readonly cluster: Address | undefined
  /** To another broker, in order, unless it is lost on the way. */
  readonly send: (...to: Parameters<Peers['send']>) => void
  /** `listener` hears all that other brokers say, of shards too. */
  onMessages(listener: Receive): void
  close(): Promise<void>
}

/** Closes the journal when it fails, and from then on with the rest. */
export async function openMetadata(options: MetadataOptions): Promise<OpenedMetadata> {
  const { dataDir, journal, neighbourhood } = options
  const { address } = neighbourhood
  let log: ShardedLog | undefined
  let keeper: Keeper | undefined
  let listener: Receive = () => {}
  const receive: Receive = (from, messages) => {
    log?.shards.receive(from, messages)
    listener(from, messages)
  }
  const peers = address === undefined ? undefined : linksOf(options, receive)
  const close = async (): Promise<void> => {
    keeper?.stop()
    await log?.shards.handAllOver(HAND_OVER_MS)
    await (log ?? journal).close()
    await peers?.stop()
  }
  try {
    await dataDir.confirm('journal')
    const opened = shardsOf(options, peers)
    log = opened
    neighbourhood.onHint(({ shard, leader, term }) => opened.shards.hear(shard, leader, term))
    const bound = address === undefined ? undefined : await peers?.listen(address)
    keeper = keeperOf(options, opened)
    return {
      log,
      cluster: bound?.address,
      send: (to, messages) => {
        peers?.send(to, messages)
      },
      onMessages: (heard) => {
        listener = heard
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function linksOf(options: MetadataOptions, receive: Receive): Peers {
  const { ports, neighbourhood, cluster } = options
  const { nodeId, starts } = options.dataDir
  return new Peers({
    ports: { ...ports, streams: neighbourhood.streams },
    identity: { clusterId: cluster.id, nodeId, starts },
    directory: neighbourhood,
    receive,
    settings: PEERS_SETTINGS,
    memory: memoryOf(options),
    onRefusedAsOld: (by) => options.onRefusedAsOld(by),
  })
}

export function memoryOf(options: MetadataOptions): StartMemory {
  const { dataDir } = options
  return {
    met: (node) => dataDir.met(node),
    remember: async (node, start) => {
      try {
        await dataDir.remember(node, start)
      } catch (error) {
        // Who was not let in for want of room dials again.
        if (!isFull(error)) options.onFailed(error as Error)
        throw error
      }
    },
  }
}

function shardsOf(options: MetadataOptions, peers: Peers | undefined): ShardedLog {
  const { ports, settings, dataDir, journal, cluster, neighbourhood } = options
  const { nodeId } = dataDir
  const { founder, shards } = cluster
  // The dead are asked too: they may only be out of reach of those who say so.
  const others = (): readonly NodeId[] => neighbourhood.neighbours().map((one) => one.nodeId)
  return openShardedLog({
    ports,
    journal,
    nodeId,
    founder,
    shards,
    ...settings.metadataTiming,
    snapshotBytesLeast: settings.journalFileBytes * SNAPSHOT_SHARE,
    entriesKept: settings.metadataEntriesKept ?? ENTRIES_KEPT,
    send: (to, messages) => {
      peers?.send(to, messages)
    },
    others,
    onLead: (shard, term) => neighbourhood.lead(shard, term),
    onFailed: (error) => options.onFailed(error),
  })
}

/** Undefined when this broker is told by hand what becomes of the shards' members. */
function keeperOf(
  { ports, settings, dataDir, neighbourhood }: MetadataOptions,
  log: ShardedLog,
): Keeper | undefined {
  const { membership } = settings
  if (membership === undefined) return undefined
  return new Keeper({
    clock: ports.clock,
    log: ports.log,
    shards: log.shards,
    nodeId: dataDir.nodeId,
    copies: membership.metadataReplicationFactor,
    vnodes: membership.vnodesPerNode,
    stableMs: membership.stableMs,
    replaceMs: membership.replaceMs,
    sight: () => neighbourhood.sight() ?? NOBODY,
    nodes: () => log.state.nodes,
  })
}

const NOBODY = { stableSince: undefined, brokers: [] }

/** Resolves when this broker knows all that anybody was told, and has its number. Waits for a quorum of every shard. */
export async function joinMetadata(
  { dataDir, cluster }: MetadataOptions,
  log: ShardedLog,
): Promise<void> {
  await log.allFresh()
  const { nodeId } = dataDir
  const { id: clusterId, founder, shards, foundedMs: timeMs } = cluster
  if (founder && log.state.cluster === undefined) {
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

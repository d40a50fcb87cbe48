// A broker on this machine: real ports, and the configuration as settings.

import { parseAddress } from '../base/address.ts'
import { systemClock } from '../io/clock/system-clock.ts'
import { nodeCompute } from '../io/compute/node-compute.ts'
import { fileDisk } from '../io/disk/file-disk.ts'
import { nodeHttp } from '../io/http/node-http.ts'
import { promMetrics } from '../io/metrics/prom-metrics.ts'
import { systemRandom } from '../io/random/system-random.ts'
import { nodeSecrets } from '../io/secrets/node-secrets.ts'
import { nodeStreams } from '../io/tcp/node-streams.ts'
import { nodeDatagrams } from '../io/udp/node-datagrams.ts'
import type { Disk } from '../ports/disk.ts'
import type { Log } from '../ports/log.ts'
import { replicationOptions } from '../server/replication.ts'
import { startServer } from '../server/server.ts'
import type { BrokerHooks, RunningBroker, ServerSettings } from '../server/types.ts'
import type { ResolvedConfig } from './config/key.ts'
import { CLUSTER_PORT_DEFAULT, defaultPolicy } from './config/load.ts'

export interface LocalServerOptions {
  readonly config: ResolvedConfig
  /** The first seals, all open. */
  readonly clusterKeys?: readonly Uint8Array[]
  readonly version: string
  readonly log: Log
  /** Node's own metrics too: one broker per process should say yes. */
  readonly processMetrics: boolean
  readonly hooks: BrokerHooks
  /** See ServerOptions. */
  readonly stopping?: Promise<unknown>
  /** Stands between the broker and the real disk: for faults in tests. */
  readonly wrapDisk?: (disk: Disk) => Disk
}

/** Journal files are small: metadata is, and a snapshot frees them. */
const JOURNAL_FILE_BYTES = 8 * 1024 * 1024
/** Beats are frames of all shards together, so they cost little; a leader that dies is replaced within two seconds. */
// Callers give up after five seconds as a rule, and should be told why by then.
const METADATA_TIMING = { electionTimeoutMs: 1000, heartbeatMs: 200, timeoutMs: 4000 }

/** Rejects as startServer does. */
export function startLocalServer(options: LocalServerOptions): Promise<RunningBroker> {
  const { config, clusterKeys = [] } = options
  const disk = fileDisk(config.dataDir)
  return startServer({
    ports: {
      clock: systemClock({ keepAlive: false }),
      random: systemRandom(),
      compute: nodeCompute,
      secrets: nodeSecrets,
      disk: options.wrapDisk?.(disk) ?? disk,
      streams: nodeStreams,
      datagrams: nodeDatagrams,
      http: nodeHttp,
      log: options.log,
      metrics: promMetrics(options.processMetrics),
    },
    settings: {
      ...settingsOf(config),
      membership: { ...membershipOf(config), clusterKeys },
    },
    version: options.version,
    hooks: options.hooks,
    ...(options.stopping !== undefined && { stopping: options.stopping }),
  })
}

/** A view of who is there is acted on when it has stood still for this long. */
const VIEW_STABLE_MS = 2000
/** Most brokers that go come back; moving what they keep costs more than waiting. */
const REPLACE_MS = 60_000

function membershipOf(config: ResolvedConfig): NonNullable<ServerSettings['membership']> {
  return {
    port: config.clusterPort,
    seeds: config.joinSeedNodes.flatMap((seed) => parseAddress(seed, CLUSTER_PORT_DEFAULT) ?? []),
    rackLabel: config.rackLabel,
    metadataReplicationFactor: config.metadataReplicationFactor,
    vnodesPerNode: config.vnodesPerNode,
    stableMs: VIEW_STABLE_MS,
    replaceMs: REPLACE_MS,
  }
}

/** Key by key, so that one without an effect shows. */
export function settingsOf(config: ResolvedConfig): ServerSettings {
  return {
    host: config.host,
    advertiseHost: config.advertiseHost,
    clientPort: config.clientPort,
    dataPort: config.dataPort,
    httpPort: config.httpPort,
    displayName: config.displayName,
    hostLabel: config.hostLabel,
    defaultReplicationFactor: config.defaultReplicationFactor,
    retentionCheckMs: config.retentionCheckMs,
    producerIdExpiryMs: config.producerIdExpiryMs,
    drainTimeoutMs: config.drainTimeoutMs,
    defaultPolicy: (replicationFactor) => defaultPolicy(config, replicationFactor),

    ...replicationOptions({
      replicaAckTimeoutMs: config.replicaAckTimeoutMs,
      leaseSyncMs: config.leaseSyncMs,
      leaseTtlMs: config.leaseTtlMs,
      fenceWaitMs: config.fenceWaitMs,
      hwStaleMs: config.hwStaleMs,
      repairDelayMs: config.repairDelayMs,
    }),

    journalFileBytes: JOURNAL_FILE_BYTES,
    metadataShards: config.metadataShards,
    metadataTiming: METADATA_TIMING,
    walFileBytes: config.walFileBytes,
    walFilesMax: config.walFilesMax,
    cacheBytes: config.cacheBytes,
    unflushedBytesMax: config.unflushedBytesMax,
    blockBytes: config.blockBytes,
    flushAgeMs: config.flushAgeMs,
    reserveBytes: config.reserveBytes,

    frameBytesMax: config.maxFrameBytes,
    connectionsMax: config.connectionsMax,
    requestsInFlightMax: config.requestsInFlightMax,
    connectionBytesMax: config.connectionBytesMax,
    answerBytesMax: config.answerBytesMax,
    helloTimeoutMs: config.helloTimeoutMs,
    frameTimeoutMs: config.frameTimeoutMs,
    answerTimeoutMs: config.answerTimeoutMs,
  }
}

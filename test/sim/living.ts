// A simulated broker that lives for long: started on a world's ports, killed and started again at will, with time passing
// as fast as there is nothing to do. What it holds is measured: bytes by folder, and the heap of this process.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { REPLICATION_DEFAULTS } from '../../src/broker/options.ts'
import type { ClientOptions } from '../../src/client/api.ts'
import { EastGuardClient } from '../../src/client/client.ts'
import { POLICY_DEFAULTS } from '../../src/model/policy.ts'
import { startServer } from '../../src/server/server.ts'
import type { RunningBroker, ServerSettings } from '../../src/server/types.ts'
import type { SimDisk } from '../../src/sim/ports/disk.ts'
import type { SimProcess } from '../../src/sim/process.ts'
import { DOOR_SETTINGS } from '../../src/sim/storage/machine.ts'
import { simWorld, type World } from '../../src/sim/world.ts'

const HOST = 'broker'
const PORT = 2921
const HOUR_MS = 3_600_000

/** Small, so that little work turns every file over many times. */
const SETTINGS: ServerSettings = {
  host: HOST,
  advertiseHost: HOST,
  clientPort: PORT,
  dataPort: 2923,
  httpPort: 2924,
  displayName: 'long-lived',
  hostLabel: HOST,
  defaultReplicationFactor: 1,
  defaultPolicy: () => ({ ...POLICY_DEFAULTS, replicationFactor: 1, minInsyncReplicas: 1 }),
  retentionCheckMs: 60_000,
  producerIdExpiryMs: 24 * HOUR_MS,
  drainTimeoutMs: 1000,
  journalFileBytes: 128 * 1024,
  metadataShards: 4,
  metadataTiming: { electionTimeoutMs: 10_000, heartbeatMs: 5000, timeoutMs: 20_000 },
  walFileBytes: 64 * 1024,
  walFilesMax: 3,
  cacheBytes: 1024 * 1024,
  unflushedBytesMax: 512 * 1024,
  blockBytes: 16 * 1024,
  flushAgeMs: 10_000,
  reserveBytes: 1024 * 1024,
  ...REPLICATION_DEFAULTS,
  leaseSyncMs: 5000,
  segmentTiming: {
    ...REPLICATION_DEFAULTS.segmentTiming,
    leaseTtlMs: 60_000,
    leaseGraceMs: 66_000,
  },
  ...DOOR_SETTINGS,
}

export class Living {
  readonly world: World
  readonly disk: SimDisk
  readonly settings: ServerSettings
  private life: SimProcess | undefined
  private running: RunningBroker | undefined
  /** What the broker said that nobody wants to hear. */
  readonly complaints: string[] = []

  constructor(seed: number, settings: Partial<ServerSettings> = {}) {
    this.world = simWorld(seed)
    this.disk = this.world.disk({ latencyMs: 1 })
    this.settings = { ...SETTINGS, ...settings }
  }

  async start(): Promise<void> {
    const life = this.world.process(HOST, this.disk, ({ level, message, fields }) => {
      if (level === 'warn' || level === 'error') {
        const { err } = fields
        this.complaints.push(
          `${level}: ${message}${err instanceof Error ? `: ${err.message}` : ''}`,
        )
      }
    })
    this.life = life
    this.running = await startServer({
      ports: { ...life.ports, disk: life.disk },
      settings: this.settings,
      version: '0.0.0',
      hooks: { onFatal: (error) => this.complaints.push(`fatal: ${error.message}`) },
    })
  }

  /** The machine loses its power, and what was not synced. */
  cutPower(): void {
    this.life?.kill({ keepUnsynced: false })
    this.life = undefined
    this.running = undefined
  }

  async stop(): Promise<void> {
    await this.running?.stop()
    this.running = undefined
  }

  client(options: Omit<ClientOptions, 'seeds'> = {}): EastGuardClient {
    return new EastGuardClient(
      { ...options, seeds: [`${HOST}:${PORT}`] },
      this.world.process('client').ports,
    )
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.world.clock.after(ms, resolve)
    })
  }

  /** Of the files below `folder`: how many, and their bytes. */
  below(folder: string): { readonly files: number; readonly bytes: number } {
    const paths = this.disk.paths().filter((path) => path.startsWith(`${folder}/`))
    let bytes = 0
    for (const path of paths) bytes += this.disk.bytesOf(path).length
    return { files: paths.length, bytes }
  }

  async list(folder: string): Promise<readonly string[]> {
    return (await this.disk.mount().list(folder)).map(({ name }) => name).sort()
  }
}

let collect: (() => void) | undefined

/** Bytes that are reachable in this process. */
export function heapBytes(): number {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as () => void
  }
  collect()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

// A broker over a store and a metadata log in memory, with a native door on a free port. `restart` is what a restarted
// process would find: the same entries and metadata, nothing else.

import { Broker } from '../../../src/broker/broker.ts'
import type { MetadataListener, MetadataLog } from '../../../src/broker/metadata/types.ts'
import { REPLICATION_DEFAULTS } from '../../../src/broker/options.ts'
import { settleRecovered } from '../../../src/broker/topics/recovered.ts'
import type { Command, ResultOf } from '../../../src/core/metadata/commands.ts'
import { apply, emptyState } from '../../../src/core/metadata/machine.ts'
import type { MetadataState } from '../../../src/core/metadata/types.ts'
import { NativeDoor } from '../../../src/doors/native/door.ts'
import type { NativeDoorSettings } from '../../../src/doors/native/settings.ts'
import { nodeCompute } from '../../../src/io/compute/node-compute.ts'
import { systemRandom } from '../../../src/io/random/system-random.ts'
import { nodeStreams } from '../../../src/io/tcp/node-streams.ts'
import { nodeId } from '../../../src/model/ids.ts'
import { MIB, POLICY_DEFAULTS } from '../../../src/model/policy.ts'
import { type SimLog, simLog } from '../../../src/sim/ports/log.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import { type ManualClock, manualClock } from '../../storage/support/ports.ts'
import { controlAlone } from './alone.ts'
import { MemoryStore } from './memory-store.ts'

export class MemoryMetadata implements MetadataLog {
  readonly state: MetadataState
  private listeners = new Set<MetadataListener>()

  constructor(state: MetadataState = emptyState()) {
    this.state = state
  }

  async propose<C extends Command>(command: C): Promise<ResultOf<C['kind']>> {
    await new Promise((resolve) => setImmediate(resolve))
    const { result, changed } = apply(this.state, command, this.state.appliedIndex + 1)
    for (const listener of this.listeners) listener(changed, this.state.appliedIndex)
    return result as unknown as ResultOf<C['kind']>
  }

  async fresh(): Promise<void> {}

  shardOf(): number {
    return 0
  }

  appliedOf(): number {
    return this.state.appliedIndex
  }

  onChange(listener: MetadataListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  async close(): Promise<void> {}
}

export const SETTINGS: NativeDoorSettings = {
  frameBytesMax: 4 * MIB,
  connectionsMax: 100,
  requestsInFlightMax: 1000,
  connectionBytesMax: 8 * MIB,
  answerBytesMax: MIB,
  helloTimeoutMs: 5000,
  frameTimeoutMs: 5000,
  answerTimeoutMs: 5000,
}

const STOP_MS = 200

const NODE = nodeId('ab'.repeat(16))

export interface Running {
  readonly broker: Broker
  readonly clock: ManualClock
  readonly log: SimLog
  readonly store: MemoryStore
  readonly metadata: MemoryMetadata
  readonly port: number
  restart(): Promise<Running>
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Time stands until the test moves its clock. */
export async function runBroker(
  settings: Partial<NativeDoorSettings> = {},
  from: Partial<Pick<Running, 'clock' | 'store' | 'metadata'>> = {},
): Promise<Running> {
  const { clock = manualClock() } = from
  const { store = new MemoryStore(clock) } = from
  const metadata = new MemoryMetadata(from.metadata?.state)
  const ownPorts = {
    clock,
    random: systemRandom(),
    compute: nodeCompute,
    log: simLog(),
    metrics: simMetrics(),
  }
  const parts = {
    store,
    metadata,
    space: async () => ({ totalBytes: 1, freeBytes: 1 }),
    ports: ownPorts,
    control: controlAlone({ ...ownPorts, nodeId: NODE, metadata }),
  }
  await settleRecovered(parts)
  const { metrics } = parts.ports
  const ports = { streams: nodeStreams, clock, metrics }
  const door = new NativeDoor(ports, { ...SETTINGS, ...settings })
  const advertised = await door.listen({ host: '127.0.0.1', port: 0 })
  const broker = new Broker(
    {
      nodeId: NODE,
      clusterId: 'cd'.repeat(16),
      displayName: 'test',
      version: '0',
      advertised,
      others: () => [],
      hostLabel: 'test',
      rackLabel: '',
      shards: () => [],
      defaultPolicy: (replicationFactor) => ({
        ...POLICY_DEFAULTS,
        replicationFactor,
        minInsyncReplicas: 1,
      }),
      defaultReplicationFactor: 3,
      retentionCheckMs: 50,
      producerIdExpiryMs: 3_600_000,
      ...REPLICATION_DEFAULTS,
      boot: 1,
      heldBytesMax: 4 * MIB,
    },
    parts,
  )
  door.open(broker)
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopped ??= door.stop(STOP_MS).then(() => broker.stop())
    return stopped
  }
  return {
    broker,
    clock,
    log: ownPorts.log,
    store,
    metadata,
    port: advertised.port,
    stop,
    restart: async () => {
      await stop()
      return await runBroker(settings, { store, metadata, clock })
    },
    [Symbol.asyncDispose]: async () => {
      let over = false
      const stopping = stop().finally(() => {
        over = true
      })
      // Of a test that failed clients may be left.
      await eventually(() => {
        clock.advance(STOP_MS)
        return over
      })
      await stopping
    },
  }
}

/** Looks again at each turn: for what comes by itself. */
export async function eventually(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

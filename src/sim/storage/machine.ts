// The machine of a run: one broker, with files so small that little work turns every one of them over.

import { REPLICATION_DEFAULTS } from '../../broker/options.ts'
import type { NativeDoorSettings } from '../../doors/native/settings.ts'
import { minInsyncDefault, POLICY_DEFAULTS } from '../../model/policy.ts'
import type { ServerSettings } from '../../server/types.ts'
import { Machine, type Watcher } from '../machine.ts'
import type { World } from '../world.ts'
import type { StoragePlan } from './plan.ts'

export const BROKER_HOST = 'broker'
export const BROKER_PORT = 2921
export const DATA_PORT = 2923
const HTTP_PORT = 2924

/** Wide enough for a few clients, and quick to end what hangs. */
export const DOOR_SETTINGS: NativeDoorSettings = {
  frameBytesMax: 4 * 1024 * 1024,
  connectionsMax: 100,
  requestsInFlightMax: 1000,
  connectionBytesMax: 16 * 1024 * 1024,
  answerBytesMax: 16 * 1024 * 1024,
  helloTimeoutMs: 5000,
  frameTimeoutMs: 5000,
  answerTimeoutMs: 5000,
}

/** What of a broker's settings a seed decides. */
type SizeSettings = StoragePlan['settings']

export function brokerSettings(host: string, sizes: SizeSettings): ServerSettings {
  return {
    ...sizes,
    host,
    advertiseHost: host,
    clientPort: BROKER_PORT,
    dataPort: DATA_PORT,
    httpPort: HTTP_PORT,
    displayName: 'simulated',
    hostLabel: host,
    defaultReplicationFactor: 1,
    defaultPolicy: (replicationFactor) => ({
      ...POLICY_DEFAULTS,
      replicationFactor,
      minInsyncReplicas: minInsyncDefault(replicationFactor),
    }),
    retentionCheckMs: 1000,
    producerIdExpiryMs: 7 * 24 * 3600 * 1000,
    drainTimeoutMs: 200,
    metadataShards: 4,
    metadataTiming: { electionTimeoutMs: 1000, heartbeatMs: 200, timeoutMs: 8000 },
    reserveBytes: 256 * 1024,
    ...REPLICATION_DEFAULTS,
    ...DOOR_SETTINGS,
  }
}

export function storageMachine(
  world: World,
  plan: StoragePlan,
  watcher: Watcher,
  onStart: () => void = () => {},
): Machine {
  const settings = brokerSettings(BROKER_HOST, plan.settings)
  return new Machine(world, { host: BROKER_HOST, settings: () => settings, onStart }, watcher)
}

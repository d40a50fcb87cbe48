// What the configuration says of replication, and what follows from it.

import { REPLICATION_DEFAULTS, type ReplicationOptions } from '../broker/options.ts'

/** By the names of the configuration. */
interface ReplicationKeys {
  readonly replicaAckTimeoutMs: number
  readonly leaseSyncMs: number
  readonly leaseTtlMs: number
  readonly fenceWaitMs: number
  readonly hwStaleMs: number
  readonly repairDelayMs: number
}

/** Clocks that run apart by less than a tenth never have two brokers lead. */
const LEASE_GRACE = 1.1

export function replicationOptions(keys: ReplicationKeys): ReplicationOptions {
  const { leaseTtlMs, replicaAckTimeoutMs, fenceWaitMs, repairDelayMs } = keys
  return {
    segmentTiming: {
      ...REPLICATION_DEFAULTS.segmentTiming,
      leaseTtlMs,
      leaseGraceMs: Math.ceil(leaseTtlMs * LEASE_GRACE),
      replicaAckTimeoutMs,
      fenceWaitMs,
      repairDelayMs,
    },
    leaseSyncMs: keys.leaseSyncMs,
    hwStaleMs: keys.hwStaleMs,
  }
}

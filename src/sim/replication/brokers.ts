// The brokers of a run: five that find one another by SWIM, each on a machine of its own. One whose disk was lost, or whose old
// copy the others refuse, comes again as a new node.

import { SEGMENT_TIMING } from '../../core/segment/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { ServerSettings } from '../../server/types.ts'
import { METADATA_TIMING } from '../cluster/machines.ts'
import { brokerHost } from '../cluster/step.ts'
import { Machine, type Watcher } from '../machine.ts'
import { membershipOf } from '../membership/brokers.ts'
import { plannedClock } from '../ports/own-clock.ts'
import { brokerSettings } from '../storage/machine.ts'
import type { World } from '../world.ts'
import type { ReplicationPlan } from './plan.ts'

/** So that what takes minutes in a cluster takes seconds in a run. */
const TIMING = { ...SEGMENT_TIMING, repairDelayMs: 4000 }
const LEASE_SYNC_MS = 250
const REPLACE_MS = 8000

export class Brokers {
  readonly all: readonly Machine[]
  private readonly plan: ReplicationPlan
  /** Of whose disk something may be missing. */
  private readonly losers = new Set<number>()
  private readonly anew = new Set<number>()

  constructor(world: World, plan: ReplicationPlan, watcher: Watcher) {
    this.plan = plan
    this.all = plan.brokers.map((clock, broker) => {
      const options = {
        host: brokerHost(broker),
        settings: () => this.settingsOf(broker),
        clock: plannedClock(clock),
        startMsMax: Number.POSITIVE_INFINITY,
      }
      return new Machine(world, options, watcher)
    })
  }

  get ready(): boolean {
    return this.all.every(({ ready }) => ready)
  }

  /** Of the nodes that are there. */
  get live(): ReadonlyMap<NodeId, Machine> {
    return new Map(
      this.all.flatMap((machine) => {
        const { nodeId, ready } = machine
        return nodeId === undefined || !ready ? [] : [[nodeId, machine] as const]
      }),
    )
  }

  /** Something on its disk may be gone, or wrong. */
  noteLoss(broker: number): void {
    this.losers.add(broker)
  }

  mayLack(broker: number): boolean {
    return this.losers.has(broker)
  }

  /** Its disk is empty: it is to find the others, whoever it was. */
  noteWiped(broker: number): void {
    this.anew.add(broker)
  }

  /** Whoever runs the cluster gives a broker that is refused as an old copy an empty disk. */
  renewRefused(): void {
    for (const [broker, machine] of this.all.entries()) {
      if (!machine.refuses) continue
      this.noteWiped(broker)
      machine.wipe(1)
    }
  }

  private settingsOf(broker: number): ServerSettings {
    const { plan } = this
    const host = brokerHost(broker)
    const founds = broker === 0 && !this.anew.has(0)
    const seeds = founds ? [0] : plan.brokers.map((_, seed) => seed)
    return {
      ...brokerSettings(host, plan.settings),
      displayName: host,
      drainTimeoutMs: plan.drainTimeoutMs,
      metadataShards: plan.shards,
      metadataTiming: METADATA_TIMING,
      segmentTiming: { ...TIMING, frozenTimeoutMs: plan.frozenTimeoutMs },
      leaseSyncMs: LEASE_SYNC_MS,
      membership: membershipOf(seeds, REPLACE_MS),
    }
  }
}

// The brokers of a run, each on a machine of its own, and what makes them one cluster: the first founds it, the others become
// part of it, and all are told of one another by the simulation, which stands where gossip will. Who keeps which part of the
// metadata is membership.ts.

import { type ClusterId, clusterId } from '../../model/ids.ts'
import type { ServerSettings } from '../../server/types.ts'
import { Machine, type Watcher } from '../machine.ts'
import { plannedClock } from '../ports/own-clock.ts'
import { brokerSettings, DATA_PORT } from '../storage/machine.ts'
import type { World } from '../world.ts'
import type { ClusterPlan } from './plan.ts'
import { brokerHost } from './step.ts'

export const CLIENT_PORT = 2921
export const CLUSTER_PORT = 2922
/** Fewer heartbeats than by default, since most of what brokers say to one another is those. */
export const METADATA_TIMING = { electionTimeoutMs: 1000, heartbeatMs: 300, timeoutMs: 8000 }

export class Machines {
  readonly all: readonly Machine[]
  /** Grows when nothing holds any longer of what was said of topics. */
  metadataLife = 1
  /** Grows when nothing holds any longer of what was said of records: they are on one disk each. */
  recordsLife = 1
  private founded: ClusterId | undefined

  constructor(world: World, plan: ClusterPlan, watcher: Watcher) {
    this.all = plan.brokers.map((broker, i) => {
      const options = {
        host: brokerHost(i),
        settings: () => this.settingsOf(plan, i),
        clock: plannedClock(broker),
        // A broker that is paused, or hears nothing of the others, may take as long as that lasts.
        startMsMax: Number.POSITIVE_INFINITY,
      }
      return new Machine(world, options, watcher)
    })
  }

  get ready(): boolean {
    return this.all.every(({ ready }) => ready)
  }

  /** The first broker has founded the cluster: from now on the others find it. */
  found(): void {
    const id = this.all[0]?.clusterId
    this.founded = id === undefined ? undefined : clusterId(id)
    for (const machine of this.all) machine.start()
  }

  diskLost(): void {
    this.recordsLife++
    if (this.all.length > 1) return
    this.metadataLife++
    this.founded = undefined
  }

  private settingsOf(plan: ClusterPlan, broker: number): ServerSettings {
    const settings = brokerSettings(brokerHost(broker), plan.settings)
    const cluster = {
      port: CLUSTER_PORT,
      neighbours: () =>
        this.all.flatMap(({ nodeId, host }) =>
          nodeId === undefined
            ? []
            : [
                {
                  nodeId,
                  displayName: host,
                  hostLabel: host,
                  rackLabel: '',
                  state: 'alive' as const,
                  boot: undefined,
                  cluster: { host, port: CLUSTER_PORT },
                  client: { host, port: CLIENT_PORT },
                  data: { host, port: DATA_PORT },
                },
              ],
        ),
    }
    const joins = this.founded
    return {
      ...settings,
      metadataTiming: METADATA_TIMING,
      ...(plan.entriesKept !== undefined && { metadataEntriesKept: plan.entriesKept }),
      cluster: joins === undefined ? cluster : { ...cluster, joins },
    }
  }
}

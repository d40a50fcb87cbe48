// The brokers of a run, each on a machine of its own, and who shares metadata with whom. Everything that makes brokers one
// cluster is said here and nowhere else in the simulation.
//
// Brokers do not know one another yet: each founds a cluster of its own, so a run is as many clusters, side by side, under
// one network and one plan of faults.

import type { ServerSettings } from '../../server/types.ts'
import { Machine, type Watcher } from '../machine.ts'
import { brokerSettings } from '../storage/machine.ts'
import type { World } from '../world.ts'
import type { ClusterPlan } from './plan.ts'
import { brokerHost } from './step.ts'

export const CLIENT_PORT = 2921

/** Brokers that share their metadata, and what is known of it. */
export interface Realm {
  readonly name: string
  /** By number. */
  readonly brokers: readonly number[]
  /** Grows when a disk is lost that everything of the realm was on: nothing said before holds any longer. */
  life: number
}

export interface Machines {
  readonly all: readonly Machine[]
  readonly realms: readonly Realm[]
}

export function machinesOf(world: World, plan: ClusterPlan, watcher: Watcher): Machines {
  const all = plan.brokers.map(({ clockRate, clockStartMs }, i) => {
    const clock = { rate: clockRate, startMs: clockStartMs, wallShiftMs: 0 }
    return new Machine(
      world,
      { host: brokerHost(i), settings: settingsOf(plan, i), clock },
      watcher,
    )
  })
  return { all, realms: all.map(({ host }, i) => ({ name: host, brokers: [i], life: 1 })) }
}

function settingsOf(plan: ClusterPlan, broker: number): ServerSettings {
  return brokerSettings(brokerHost(broker), plan.settings)
}

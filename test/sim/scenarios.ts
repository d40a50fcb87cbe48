// The scenarios by name: what a seed means, how its plan is run, and how the result is told. Everything that runs many
// seeds, shortens a plan or replays one knows no more of a scenario than this.

import { createHash } from 'node:crypto'
import { type ClusterPlan, clusterPlan } from '../../src/sim/cluster/plan.ts'
import { runCluster } from '../../src/sim/cluster/scenario.ts'
import { type MembershipPlan, membershipPlan } from '../../src/sim/membership/plan.ts'
import { runMembership } from '../../src/sim/membership/scenario.ts'
import { type ReplicationPlan, replicationPlan } from '../../src/sim/replication/plan.ts'
import { runReplication } from '../../src/sim/replication/scenario.ts'
import { type StoragePlan, storagePlan } from '../../src/sim/storage/plan.ts'
import { runStorage } from '../../src/sim/storage/scenario.ts'
import { watched } from './run.ts'

export interface Plan {
  readonly seed: number
  readonly steps: readonly unknown[]
}

export interface Told {
  readonly violations: readonly string[]
  readonly story: readonly string[]
  /** Added up over seeds. */
  readonly counts: Readonly<Record<string, number>>
}

export interface Scenario {
  readonly planOf: (seed: number) => Plan
  readonly run: (plan: Plan) => Promise<Told>
}

const storage: Scenario = {
  planOf: storagePlan,
  run: async (plan) => {
    const outcome = await watched((loop) => runStorage(plan as StoragePlan, loop))
    const { violations, story, sent, acknowledged, read, operations } = outcome
    const counts = { 'records sent': sent, acknowledged, read, 'disk operations': operations }
    return { violations, story, counts }
  },
}

const cluster: Scenario = {
  planOf: clusterPlan,
  run: async (plan) => {
    const outcome = await watched((loop) => runCluster(plan as ClusterPlan, loop))
    const { violations, story, operations, answered, virtualMs, hits } = outcome
    const seconds = virtualMs / 1000
    const least = { 'seeds below 500 operations': operations < 500 ? 1 : 0 }
    return {
      violations,
      story,
      counts: { operations, answered, 'virtual seconds': seconds, ...least, ...hits },
    }
  },
}

const membership: Scenario = {
  planOf: membershipPlan,
  run: async (plan) => {
    const outcome = await watched((loop) => runMembership(plan as MembershipPlan, loop))
    const { violations, story, operations, answered, virtualMs, moves, hits } = outcome
    const counts = { operations, answered, 'virtual seconds': virtualMs / 1000, moves, ...hits }
    return { violations, story, counts }
  },
}

const replication: Scenario = {
  planOf: replicationPlan,
  run: async (plan) => {
    const outcome = await watched((loop) => runReplication(plan as ReplicationPlan, loop))
    const { violations, story, operations, acknowledged, read, segments, looks } = outcome
    const least = { 'seeds below 500 operations': operations < 500 ? 1 : 0 }
    const seconds = { 'virtual seconds': outcome.virtualMs / 1000, ...least }
    const done = { operations, acknowledged, read, segments, looks }
    return { violations, story, counts: { ...done, ...seconds, ...outcome.hits } }
  },
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  storage,
  cluster,
  membership,
  replication,
}

/** Of the whole story, to the letter. */
export function digestOf(story: readonly string[]): string {
  return createHash('sha256').update(story.join('\n')).digest('hex')
}

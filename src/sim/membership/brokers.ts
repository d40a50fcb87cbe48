// The brokers of a run. Nobody tells them of one another: each has seeds, as its configuration would, and whoever runs them
// corrects a configuration that names nobody who is there.

import { EastGuardError } from '../../base/errors.ts'
import type { NodeId } from '../../model/ids.ts'
import type { MembershipSettings, ServerSettings } from '../../server/types.ts'
import { CLUSTER_PORT } from '../cluster/machines.ts'
import { brokerHost } from '../cluster/step.ts'
import { Machine, type Watcher } from '../machine.ts'
import { plannedClock } from '../ports/own-clock.ts'
import { brokerSettings } from '../storage/machine.ts'
import type { World } from '../world.ts'
import type { MembershipPlan } from './plan.ts'

const COPIES = 3
const VNODES = 64
const STABLE_MS = 1000
/** So that what takes minutes in a cluster takes seconds in a run. */
const SWIM: Required<MembershipSettings>['swim'] = {
  syncEveryMs: 10_000,
  seedRetryMs: 5000,
  deadProbeMaxMs: 8000,
  holdMs: 2000,
  holdMaxMs: 8000,
  flapForgivenMs: 30_000,
  leaveMs: 1000,
}

type Standing =
  /** Not there yet. */
  | 'spare'
  | 'member'
  /** It is to found a cluster, or has, that must not be. */
  | 'mistaken'
  /** Gone for ever. */
  | 'retired'

/** Of a broker with these for its seeds, by number. */
export function membershipOf(seeds: readonly number[], replaceMs: number): MembershipSettings {
  return {
    port: CLUSTER_PORT,
    seeds: seeds.map((seed) => ({ host: brokerHost(seed), port: CLUSTER_PORT })),
    rackLabel: '',
    metadataReplicationFactor: COPIES,
    vnodesPerNode: VNODES,
    stableMs: STABLE_MS,
    replaceMs,
    swim: SWIM,
  }
}

export class Brokers {
  readonly all: readonly Machine[]
  readonly copies: number = COPIES
  readonly vnodes: number = VNODES
  private readonly world: World
  private readonly plan: MembershipPlan
  private readonly watcher: Watcher
  private readonly standings: Standing[]
  /** Whose disk was lost: its configuration is written anew. */
  private readonly anew = new Set<number>()

  constructor(world: World, plan: MembershipPlan, watcher: Watcher) {
    this.world = world
    this.plan = plan
    this.watcher = watcher
    this.standings = plan.brokers.map(() => 'spare')
    this.all = plan.brokers.map((planned, broker) => {
      const options = {
        host: brokerHost(broker),
        settings: () => this.settingsOf(broker),
        clock: plannedClock(planned),
        // It may wait for seeds, or for those who keep its metadata.
        startMsMax: Number.POSITIVE_INFINITY,
        mayStart: () => this.mayStart(broker),
        onFatal: (error: Error) => this.ended(broker, error),
      }
      return new Machine(world, options, watcher)
    })
  }

  machine(broker: number): Machine {
    return this.all[broker] as Machine
  }

  /** Those that are, or will be again, part of the cluster. */
  get members(): readonly number[] {
    return this.numbers('member')
  }

  get mistaken(): readonly number[] {
    return this.numbers('mistaken')
  }

  private numbers(standing: Standing): readonly number[] {
    return this.all.flatMap((_, broker) => (this.standings[broker] === standing ? [broker] : []))
  }

  nodeOf(broker: number): NodeId | undefined {
    return this.machine(broker).nodeId
  }

  isSpare(broker: number): boolean {
    return this.standings[broker] === 'spare'
  }

  join(broker: number): void {
    this.standings[broker] = 'member'
    this.machine(broker).start()
  }

  retire(broker: number): void {
    this.standings[broker] = 'retired'
    void this.machine(broker).stop(1)
  }

  replace(broker: number, downMs: number): void {
    this.anew.add(broker)
    this.machine(broker).wipe(downMs)
  }

  foundByMistake(broker: number, downMs: number): void {
    this.standings[broker] = 'mistaken'
    this.machine(broker).wipe(downMs)
  }

  private mayStart(broker: number): boolean {
    const standing = this.standings[broker]
    return standing === 'member' || standing === 'mistaken'
  }

  private ended(broker: number, error: Error): void {
    if (!(error instanceof EastGuardError) || error.code !== 'CLUSTER_MISMATCH') return
    if (this.standings[broker] !== 'mistaken') {
      this.watcher.violation(
        `${brokerHost(broker)} has not founded a cluster by mistake, and stops`,
      )
      return
    }
    this.world.clock.after(1, () => {
      this.watcher.say(`${brokerHost(broker)}: its configuration is corrected`)
      this.standings[broker] = 'member'
      this.replace(broker, 100)
    })
  }

  private seedsOf(broker: number): readonly number[] {
    if (this.standings[broker] === 'mistaken') return []
    const members = this.members.filter((one) => one !== broker)
    const seeds = this.plan.brokers[broker]?.seeds ?? []
    const others = seeds.filter((one) => one !== broker)
    const named = others.length === 0 || others.some((one) => this.leadsHere(one))
    if (!named || this.anew.has(broker)) return [broker, ...members]
    // Nobody comes to the wrong cluster after all: it would be no founder's alone any more.
    return seeds.filter((one) => this.standings[one] !== 'mistaken')
  }

  /** Whoever asks it comes to this cluster, or waits for it. */
  private leadsHere(broker: number): boolean {
    const standing = this.standings[broker]
    return standing !== 'retired' && standing !== 'mistaken'
  }

  private settingsOf(broker: number): ServerSettings {
    const { plan } = this
    const host = brokerHost(broker)
    return {
      ...brokerSettings(host, plan.settings),
      displayName: host,
      metadataShards: plan.shards,
      membership: membershipOf(this.seedsOf(broker), plan.replaceMs),
    }
  }
}

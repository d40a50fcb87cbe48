// A client and a fake broker on a simulated network, under one seed and a virtual clock.

import { prng } from '../../../src/base/prng.ts'
import type { ClientOptions } from '../../../src/client/api.ts'
import { EastGuardClient } from '../../../src/client/client.ts'
import { SimClock } from '../../../src/sim/ports/clock.ts'
import { simCompute } from '../../../src/sim/ports/compute.ts'
import { simLog } from '../../../src/sim/ports/log.ts'
import { type SimNetwork, simNetwork } from '../../../src/sim/ports/network.ts'
import { simRandom } from '../../../src/sim/ports/random.ts'
import { settle } from '../../ports/support.ts'
import { FakeBroker } from './fake-broker.ts'
import { FakeCluster } from './fake-cluster.ts'

export interface World {
  readonly clock: SimClock
  readonly network: SimNetwork
  readonly broker: FakeBroker
  readonly client: EastGuardClient
  /** Lets `ms` of virtual time pass. */
  pass(ms: number): Promise<void>
  /** Resolves after `ms` of virtual time, which somebody else makes pass. */
  sleep(ms: number): Promise<void>
  /** Runs time until the promise has settled; its value or its error. */
  until<T>(promise: Promise<T>): Promise<T>
}

export const ADDRESS = { host: 'broker', port: 2921 }

export async function world(seed: number = 1, options: ClientOptions = {}): Promise<World> {
  const { network, clock } = machinery(seed)
  const broker = new FakeBroker(clock, ADDRESS)
  await broker.start(network.streams('broker'))
  return { ...running(seed, clock, network, { seeds: ['broker:2921'], ...options }), broker }
}

export interface ClusterWorld extends Omit<World, 'broker'> {
  readonly cluster: FakeCluster
}

/** With brokers `b0`, `b1` ... that share a topic `t`. */
export async function clusterWorld(
  shape: { brokers: number; partitions: number; replicationFactor: number },
  seed: number = 1,
  options: ClientOptions = {},
): Promise<ClusterWorld> {
  const { network, clock } = machinery(seed)
  const { brokers, partitions, replicationFactor } = shape
  const cluster = new FakeCluster(clock, network, brokers, partitions, replicationFactor)
  await cluster.start()
  return { ...running(seed, clock, network, { seeds: ['b0:2921'], ...options }), cluster }
}

function machinery(seed: number): { network: SimNetwork; clock: SimClock } {
  const clock = new SimClock()
  return { network: simNetwork({ clock, seed }), clock }
}

function running(
  seed: number,
  clock: SimClock,
  network: SimNetwork,
  options: ClientOptions,
): Omit<World, 'broker'> {
  const client = new EastGuardClient(options, {
    streams: network.streams('client'),
    clock,
    random: simRandom(prng(seed)),
    compute: simCompute,
    log: simLog(),
  })
  return {
    clock,
    network,
    client,
    pass: (ms) => clock.advance(ms, settle),
    sleep: (ms) =>
      new Promise((resolve) => {
        clock.after(ms, resolve)
      }),
    until: async (promise) => {
      let settled = false
      const done = (): void => {
        settled = true
      }
      promise.then(done, done)
      await clock.runUntil(() => settled, settle)
      return promise
    },
  }
}

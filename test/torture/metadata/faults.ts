// What happens to a cluster in a round. Each kind takes a cluster that is well and leaves it with all brokers ready; what
// must go on meanwhile, and what must not, is proved in between.

import type { Prng } from '../../../src/base/prng.ts'
import { EastGuard, EastGuardError } from '../../../src/index.ts'
import { pause } from '../../support/broker-process.ts'
import type { Cluster } from '../../support/cluster.ts'
import type { ClusterBroker } from '../../support/cluster-broker.ts'

export const KINDS = ['kill', 'pause', 'kill-two', 'restart-all'] as const
export type Kind = (typeof KINDS)[number]

export interface Scene {
  readonly cluster: Cluster
  readonly random: Prng
  /** Everything that can be asked for is done by this broker, within reasonable time. */
  works(broker: ClusterBroker, what: string): Promise<void>
  violation(what: string): void
}

/** A cluster has so many shards at the least. */
export const SHARDS_LEAST = 32
/** Longer than an election takes. */
const PAUSE_MS_LEAST = 2200
const PAUSE_MS_MORE = 1500
/** A little of the service's own deadline, so that it is the caller's that runs out; and more than it. */
const DEADLINES_MS = [2500, 11_000] as const
/** This machine may be busy: what the deadline says is not exact. */
const LATE_MS = 1500

export async function strike(kind: Kind, scene: Scene, brief: boolean): Promise<string> {
  switch (kind) {
    case 'kill':
      return killOne(scene)
    case 'pause':
      return pauseLeader(scene)
    case 'kill-two':
      return killTwo(scene, DEADLINES_MS[brief ? 0 : scene.random.below(2)] as number)
    case 'restart-all':
      return restartAll(scene)
  }
}

async function killOne(scene: Scene): Promise<string> {
  const { cluster, random } = scene
  const [victim, survivor] = pick(cluster.brokers, random)
  await victim.kill()
  if (random.below(2) === 0) await scene.works(survivor, 'without one broker')
  else await pause(random.below(1500))
  await again(cluster, victim)
  return `broker ${numberOf(cluster, victim)} killed`
}

async function pauseLeader(scene: Scene): Promise<string> {
  const { cluster, random } = scene
  const leader =
    (await cluster.leader(random.below(SHARDS_LEAST))) ?? random.below(cluster.brokers.length)
  const [victim, survivor] = pick(cluster.brokers, random, leader)
  const began = performance.now()
  victim.pause()
  await scene.works(survivor, 'while a leader is paused')
  const rest = PAUSE_MS_LEAST + random.below(PAUSE_MS_MORE) - (performance.now() - began)
  if (rest > 0) await pause(rest)
  victim.resume()
  return `broker ${numberOf(cluster, victim)} paused for ${Math.round(performance.now() - began)} ms`
}

async function killTwo(scene: Scene, deadlineMs: number): Promise<string> {
  const { cluster, random } = scene
  const [survivor, ...victims] = pick(cluster.brokers, random)
  await Promise.all(victims.map((victim) => victim.kill()))
  const outcome = await createAt(survivor, deadlineMs)
  if (!outcome.code.match(/^(METADATA_UNAVAILABLE|TIMEOUT)$/)) {
    scene.violation(`a creation at one broker of three came to ${outcome.code}`)
  }
  if (outcome.ms > deadlineMs + LATE_MS) {
    scene.violation(`a creation with ${deadlineMs} ms was told after ${outcome.ms} ms`)
  }
  const [first, second] = victims
  await again(cluster, first)
  await scene.works(survivor, 'when one of two has returned')
  await again(cluster, second)
  return `all but broker ${numberOf(cluster, survivor)} killed (${outcome.code} after ${outcome.ms} ms)`
}

async function createAt(
  broker: ClusterBroker,
  timeoutMs: number,
): Promise<{ readonly code: string; readonly ms: number }> {
  const { host, port } = broker.address
  await using client = new EastGuard({ seeds: [`${host}:${port}`] })
  const began = performance.now()
  const code = await client
    .admin()
    .createTopic(`lonely-${Math.round(began)}`, { timeoutMs })
    .then(
      () => 'success',
      (error: unknown) => (error instanceof EastGuardError ? error.code : String(error)),
    )
  return { code, ms: Math.round(performance.now() - began) }
}

async function restartAll({ cluster, random }: Scene): Promise<string> {
  const signal = random.below(2) === 0 ? 'SIGTERM' : 'SIGKILL'
  await Promise.all(cluster.brokers.map((broker) => broker.end(signal)))
  await Promise.all(cluster.brokers.map((broker) => cluster.start(broker)))
  await Promise.all(cluster.brokers.map((broker) => broker.ready()))
  return `all ended by ${signal}`
}

async function again(cluster: Cluster, broker: ClusterBroker): Promise<void> {
  await cluster.start(broker)
  await broker.ready()
}

type Some = readonly [ClusterBroker, ClusterBroker, ClusterBroker]

/** In any order, all different; `first` by number, if it is said. */
function pick(brokers: readonly ClusterBroker[], random: Prng, first?: number): Some {
  const at = first ?? random.below(brokers.length)
  const turn = random.below(2) === 0 ? 1 : brokers.length - 1
  const one = (i: number): ClusterBroker => brokers[i % brokers.length] as ClusterBroker
  return [one(at), one(at + turn), one(at + 2 * turn)]
}

function numberOf(cluster: Cluster, broker: ClusterBroker): number {
  return cluster.brokers.indexOf(broker) + 1
}

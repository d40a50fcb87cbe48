// What happens to a cluster in a round. Each kind takes a cluster that is well and leaves it with all brokers ready; what
// must go on meanwhile, and what must not, is proved in between.

import type { Prng } from '../../../src/base/prng.ts'
import { EastGuard, EastGuardError } from '../../../src/index.ts'
import type { LocalBroker, LocalCluster } from '../../support/local-cluster.ts'
import { pause } from '../../support/time.ts'

export const KINDS = ['kill', 'stop', 'pause', 'kill-two', 'restart-all'] as const
export type Kind = (typeof KINDS)[number]

export interface Scene {
  readonly cluster: LocalCluster
  readonly random: Prng
  /** No round takes longer than it must. */
  readonly brief: boolean
  /** Everything that can be asked for is done by this broker, within reasonable time. */
  works(broker: LocalBroker, what: string): Promise<void>
  violation(what: string): void
}

export interface Struck {
  readonly told: string
  /** When it began. */
  readonly sinceMs: number
  /** They had a majority all the time. */
  readonly survivors: readonly LocalBroker[]
}

/** Long after the others have found it dead. */
const PAUSE_MS = 20_000
/** Longer than an election takes. */
const BRIEF_PAUSE_MS = 2500
/** Without one broker, so that elections show. */
const ALONE_MS = 2500
const BRIEF_ALONE_MS = 800
/** A little of the service's own deadline, so that it is the caller's that runs out; and more than it. */
const DEADLINES_MS = [2500, 11_000] as const
const BRIEF_DEADLINE_MS = 1500
/** This machine may be busy: what the deadline says is not exact. */
const LATE_MS = 1500
/** Between the starts of two brokers, at most. */
const APART_MS = 2000

export async function strike(kind: Kind, scene: Scene): Promise<Struck> {
  switch (kind) {
    case 'kill':
      return endOne(scene, 'SIGKILL')
    case 'stop':
      return endOne(scene, 'SIGTERM')
    case 'pause':
      return pauseLeader(scene)
    case 'kill-two':
      return killTwo(scene)
    case 'restart-all':
      return restartAll(scene)
  }
}

async function endOne(scene: Scene, signal: 'SIGTERM' | 'SIGKILL'): Promise<Struck> {
  const { cluster, random } = scene
  const [victim, ...survivors] = pick(cluster.brokers, random)
  const sinceMs = performance.now()
  const how = await victim.end(signal)
  if (signal === 'SIGTERM' && how !== 0) scene.violation(`${victim.name} stopped with ${how}`)
  const endedMs = Math.round(performance.now() - sinceMs)
  if (random.below(2) === 0) await scene.works(survivors[0], 'without one broker')
  await pause(random.below(scene.brief ? BRIEF_ALONE_MS : ALONE_MS))
  await again(cluster, victim)
  return { told: `${victim.name} ended by ${signal} within ${endedMs} ms`, sinceMs, survivors }
}

async function pauseLeader(scene: Scene): Promise<Struck> {
  const { cluster, random } = scene
  const [victim, ...survivors] = pick(cluster.brokers, random, await leader(cluster, random))
  const sinceMs = performance.now()
  victim.pause()
  await scene.works(survivors[0], 'while a leader is paused')
  const rest = (scene.brief ? BRIEF_PAUSE_MS : PAUSE_MS) - (performance.now() - sinceMs)
  if (rest > 0) await pause(rest)
  victim.resume()
  const ms = Math.round(performance.now() - sinceMs)
  return { told: `${victim.name}, which leads, paused for ${ms} ms`, sinceMs, survivors }
}

/** A broker that leads a shard, any, by number. */
async function leader(cluster: LocalCluster, random: Prng): Promise<number> {
  await using client = new EastGuard({ seeds: cluster.seeds })
  const { brokers } = await client.admin().describeCluster()
  const leading = brokers.filter(({ leads }) => leads > 0)
  const chosen = leading[random.below(Math.max(1, leading.length))]
  const found = cluster.brokers.findIndex(({ port }) => port === chosen?.clientPort)
  if (found < 0) throw new Error('no broker leads a shard')
  return found
}

async function killTwo(scene: Scene): Promise<Struck> {
  const { cluster, random } = scene
  const chosen = DEADLINES_MS[random.below(2)] as number
  const deadlineMs = scene.brief ? BRIEF_DEADLINE_MS : chosen
  const [survivor, ...victims] = pick(cluster.brokers, random)
  const sinceMs = performance.now()
  await Promise.all(victims.map((victim) => victim.end('SIGKILL')))
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
  const told = `all but ${survivor.name} killed (${outcome.code} after ${outcome.ms} ms)`
  return { told, sinceMs, survivors: [] }
}

async function createAt(
  broker: LocalBroker,
  timeoutMs: number,
): Promise<{ readonly code: string; readonly ms: number }> {
  await using client = new EastGuard({ seeds: [broker.address] })
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

async function restartAll({ cluster, random, brief }: Scene): Promise<Struck> {
  const signal = random.below(2) === 0 ? 'SIGTERM' : 'SIGKILL'
  const sinceMs = performance.now()
  await Promise.all(cluster.brokers.map((broker) => broker.end(signal)))
  // The founder is the first or the last as often as any other.
  const order = pick(cluster.brokers, random)
  for (const broker of order) {
    await cluster.start(broker)
    await pause(random.below(brief ? APART_MS / 4 : APART_MS))
  }
  await Promise.all(order.map((broker) => broker.ready()))
  const names = order.map(({ name }) => name).join(', ')
  return { told: `all ended by ${signal}, started as ${names}`, sinceMs, survivors: [] }
}

async function again(cluster: LocalCluster, broker: LocalBroker): Promise<void> {
  await cluster.start(broker)
  await broker.ready()
}

type Some = readonly [LocalBroker, LocalBroker, LocalBroker]

/** In any order, all different; `first` by number, if it is said. */
function pick(brokers: readonly LocalBroker[], random: Prng, first?: number): Some {
  const at = first ?? random.below(brokers.length)
  const turn = random.below(2) === 0 ? 1 : brokers.length - 1
  const one = (i: number): LocalBroker => brokers[i % brokers.length] as LocalBroker
  return [one(at), one(at + turn), one(at + 2 * turn)]
}

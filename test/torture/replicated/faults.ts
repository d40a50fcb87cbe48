// What happens to a broker that holds replicas, or to several. Each takes a cluster that is well and under load, and leaves
// it with all its brokers running; that they come to be well again is for the caller to see.

import { cp, rm, stat } from 'node:fs/promises'
import type { Prng } from '../../../src/base/prng.ts'
import type { ClusterInfo } from '../../../src/client/api.ts'
import { EastGuard } from '../../../src/index.ts'
import type { LocalBroker, LocalCluster } from '../../support/local-cluster.ts'
import { pause, within } from '../../support/time.ts'
import { flipBit, isWhole, settledFile } from './flip.ts'
import { placesOf, replicasOf } from './places.ts'

export const FAULTS = [
  'kill-follower',
  'kill-leader',
  'kill-two',
  'kill-all',
  'pause-leader',
  'slow-follower',
  'full-follower',
  'full-leader',
  'flip-down',
  'flip-running',
  'wipe-follower',
  'old-copy',
] as const
export type Fault = (typeof FAULTS)[number]

export interface Scene {
  readonly cluster: LocalCluster
  readonly topics: readonly string[]
  readonly random: Prng
  /** The topic whose replicas are struck. */
  readonly topic: string
  /** No round takes longer than it must. */
  readonly brief: boolean
  violation(what: string): void
  /** Resolves when all is well with what there is. */
  well(): Promise<void>
  /** Everything, from each replica. */
  readAll(): Promise<void>
  /** Has the brokers forget what they keep in memory of records: it is read from their disks then. */
  forgetful(): Promise<void>
}

const DOWN_MS = 5000
const BRIEF_DOWN_MS = 1500
/** Past lease_ttl_ms, by which another leads. */
const PAST_LEASE_MS = 2600
/** Past replica_ack_timeout_ms. */
const SLOW_SYNC_MS = 1500
const DISK_MS = 5000
/** Until others lead what a broker without space led. */
const GIVEN_UP_MS = 10_000
/** Of a broker that must not start. */
const REFUSES_MS = 30_000
const REPLACED_MS = 90_000
const MENDED_MS = 60_000
const READ_AGAIN_MS = 500

export async function strike(fault: Fault, scene: Scene): Promise<string> {
  const { cluster, random, topic, brief } = scene
  const [leader, ...followers] = await replicasOf(cluster, topic)
  const follower = followers[random.below(followers.length)] as LocalBroker
  const victims = [leader as LocalBroker, follower]
  const downMs = random.below(brief ? BRIEF_DOWN_MS : DOWN_MS)
  switch (fault) {
    case 'kill-follower':
      return kill(scene, [follower], downMs)
    case 'kill-leader':
      return kill(scene, [leader as LocalBroker], downMs)
    case 'kill-two':
      return kill(scene, random.below(2) === 0 ? victims : followers, downMs)
    case 'kill-all':
      return kill(scene, [...cluster.brokers], random.below(500))
    case 'pause-leader':
      return pauseLeader(leader as LocalBroker, PAST_LEASE_MS + downMs)
    case 'slow-follower':
      await follower.fault({ kind: 'slow-syncs', ms: SLOW_SYNC_MS })
      await pause(brief ? DISK_MS / 2 : DISK_MS)
      await follower.fault({ kind: 'slow-syncs', ms: 0 })
      return `${follower.name} took ${SLOW_SYNC_MS} ms for each sync`
    case 'full-follower':
      await follower.fault({ kind: 'full', full: true })
      await pause(brief ? DISK_MS / 2 : DISK_MS)
      await follower.fault({ kind: 'full', full: false })
      return `the disk of ${follower.name} was full`
    case 'full-leader':
      return fullLeader(scene, leader as LocalBroker)
    case 'flip-down':
    case 'flip-running':
      return flip(scene, follower, fault === 'flip-running')
    case 'wipe-follower':
      return wipe(scene, follower)
    case 'old-copy':
      return oldCopy(scene, follower)
  }
}

async function kill(
  { cluster }: Scene,
  victims: readonly LocalBroker[],
  downMs: number,
): Promise<string> {
  await Promise.all(victims.map((victim) => victim.end('SIGKILL')))
  await pause(downMs)
  for (const victim of victims) await cluster.start(victim)
  await Promise.all(victims.map((victim) => victim.ready()))
  return `${victims.map(({ name }) => name).join(', ')} killed, away for ${downMs} ms`
}

/** Others have room, and take over; it takes part again when it has room itself. */
async function fullLeader(scene: Scene, leader: LocalBroker): Promise<string> {
  const { cluster, topic } = scene
  await leader.fault({ kind: 'full', full: true })
  await within(GIVEN_UP_MS, 'another leader', async () => {
    const [now] = await replicasOf(cluster, topic)
    return now !== leader
  }).catch(() => {
    scene.violation(
      `${leader.name} leads ${topic} still, ${GIVEN_UP_MS} ms after its disk was full`,
    )
  })
  await leader.fault({ kind: 'full', full: false })
  return `the disk of ${leader.name}, which led, was full`
}

async function pauseLeader(leader: LocalBroker, ms: number): Promise<string> {
  leader.pause()
  await pause(ms)
  leader.resume()
  return `${leader.name}, which leads, stopped for ${ms} ms`
}

/** Nobody finds it before somebody reads; then it is mended, and whoever reads sees nothing of it. */
async function flip(scene: Scene, follower: LocalBroker, running: boolean): Promise<string> {
  const { cluster, topics, random } = scene
  const path = await settledFile(cluster, topics, follower, random)
  if (!running) await follower.end('SIGKILL')
  const what = await flipBit(path, random)
  if (running) await scene.forgetful()
  else await cluster.start(follower)
  await follower.ready()
  const told = `${what} changed in ${path.slice(follower.dataDir.length + 1)} of ${follower.name}`
  // Who has just started sends its readers elsewhere for a while.
  const untilMs = performance.now() + MENDED_MS
  while (!(await isWhole(path))) {
    if (performance.now() > untilMs) {
      scene.violation(`not mended within ${MENDED_MS} ms: ${told}`)
      break
    }
    await scene.readAll()
    await pause(READ_AGAIN_MS)
  }
  return `${told} while it was ${running ? 'running' : 'down'}`
}

/** What it had is gone, and so is who it was: somebody new comes in its place. */
async function wipe(scene: Scene, follower: LocalBroker): Promise<string> {
  const old = await nodeOf(scene, follower)
  await follower.end('SIGKILL')
  await rm(follower.dataDir, { recursive: true })
  await replaced(scene, follower, old)
  return `${follower.name} lost its data directory`
}

async function oldCopy(scene: Scene, follower: LocalBroker): Promise<string> {
  const { cluster } = scene
  const copy = `${follower.dataDir}.copy`
  const old = await nodeOf(scene, follower)
  await follower.end('SIGKILL')
  // The lock is a socket.
  const filter = async (path: string): Promise<boolean> => !(await stat(path)).isSocket()
  await cp(follower.dataDir, copy, { recursive: true, filter })
  await cluster.start(follower)
  await follower.ready()
  await scene.well()
  await follower.end('SIGKILL')
  await rm(follower.dataDir, { recursive: true })
  await cp(copy, follower.dataDir, { recursive: true })
  await cluster.start(follower)
  try {
    const code = await follower.ended(REFUSES_MS)
    if (code === 0) scene.violation(`${follower.name} ended with 0 on an older copy of its data`)
  } catch {
    scene.violation(`${follower.name} runs on an older copy of its data directory`)
    await follower.end('SIGKILL')
  }
  await rm(follower.dataDir, { recursive: true })
  await rm(copy, { recursive: true })
  await replaced(scene, follower, old)
  return `${follower.name} was given an older copy of its data directory, and refused it`
}

async function replaced(scene: Scene, follower: LocalBroker, old: string): Promise<void> {
  const { cluster, topics } = scene
  await cluster.start(follower)
  await follower.ready()
  const gone = async (): Promise<boolean> => {
    const places = await placesOf(cluster, topics)
    return places.topics.every(({ ranges }) =>
      ranges.every(({ segments }) => segments.every(({ replicas }) => !isIn(replicas, old))),
    )
  }
  await within(REPLACED_MS, `${old} is replaced in all that it held`, gone)
  await using client = new EastGuard({ seeds: cluster.seeds })
  const { brokers } = await client.admin().describeCluster()
  const node = brokers.find(({ nodeId }) => nodeId === old)?.nodeId
  if (node !== undefined) await client.admin().setBrokerRole(node, 'removed')
  // Its part of the metadata too: were the next one to lose everything before, a shard would have lost a majority for good.
  const keepAll = ({ brokers: all, shards }: ClusterInfo): boolean => {
    const keeping = all.filter(({ state, shards: kept }) => state === 'alive' && kept === shards)
    return keeping.length === cluster.brokers.length
  }
  for (const { name, address } of cluster.brokers) {
    const what = `all three keep all metadata, as ${name} says`
    await cluster.until(what, REPLACED_MS, keepAll, [address])
  }
}

function isIn(replicas: readonly string[], node: string): boolean {
  return replicas.includes(node)
}

async function nodeOf({ cluster, topics }: Scene, broker: LocalBroker): Promise<string> {
  const { info } = await placesOf(cluster, topics)
  const found = info.brokers.find(
    ({ displayName, state }) => displayName === broker.name && state === 'alive',
  )
  if (found === undefined) throw new Error(`${broker.name} is no broker that lives`)
  return found.nodeId
}

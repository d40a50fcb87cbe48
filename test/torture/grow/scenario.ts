// Three brokers become five and three again, while clients ask for metadata without a pause. No call may fail, and after each
// change what is held and led must be even, within a fifth, before a minute has passed.
//
//   brokers   3 ──── add two ──── 5 ──── drain and remove both ──── 3
//   load      ├────────────────────────────────────────────────────┤ then every topic is looked for, at every broker

import type { ClusterInfo } from '../../../src/client/api.ts'
import { EastGuard } from '../../../src/index.ts'
import { LocalCluster } from '../../support/local-cluster.ts'
import { secondsSince } from '../../support/time.ts'
import { Load } from './load.ts'

const WORKERS = 4
const EVEN_WITHIN = 0.2
const EVEN_MS = 60_000
/** Of a longer wait, so that how much too long it took is told as well. */
const PATIENCE_MS = 180_000
const BASE = 3
const ADDED = 2

export interface GrowTorture {
  readonly rounds: number
  readonly print: (line: string) => void
}

/** Resolves with the code to end with. */
export async function tortureGrow({ rounds, print }: GrowTorture): Promise<number> {
  const cluster = await LocalCluster.make({ flags: [] })
  const load = new Load()
  const run = new Run(cluster, load, print)
  try {
    for (let i = 0; i < BASE; i++) await cluster.add()
    await run.even('three brokers', BASE)
    for (let i = 0; i < WORKERS; i++) load.add(rotated(cluster.seeds, i))
    for (let n = 1; n <= rounds && load.violations.length === 0; n++) await run.round()
    await load.stop()
    await run.verify()
  } catch (error) {
    load.violations.push(`it could not go on: ${String(error)}`)
    await load.stop()
  } finally {
    await cluster.close()
  }
  print(`${rounds} rounds: ${load.kept.size} topics kept, ${load.violations.length} violations`)
  for (const violation of load.violations.slice(0, 20)) print(`  ${violation}`)
  return load.violations.length > 0 ? 1 : 0
}

class Run {
  private readonly cluster: LocalCluster
  private readonly load: Load
  private readonly print: (line: string) => void

  constructor(cluster: LocalCluster, load: Load, print: (line: string) => void) {
    this.cluster = cluster
    this.load = load
    this.print = print
  }

  async round(): Promise<void> {
    const { cluster, load } = this
    for (let i = 0; i < ADDED; i++) await cluster.add()
    // First to those that will go.
    load.add(cluster.seeds.toReversed())
    await this.even('five brokers', BASE + ADDED)
    await this.shrink()
    await this.even('three brokers again', BASE)
  }

  private async shrink(): Promise<void> {
    const { cluster } = this
    const leaving = cluster.brokers.splice(BASE)
    const names = new Set(leaving.map(({ name }) => name))
    await using client = new EastGuard({ seeds: cluster.seeds })
    const admin = client.admin()
    const { brokers } = await admin.describeCluster()
    const going = brokers.filter(({ displayName }) => names.has(displayName))
    for (const { nodeId } of going) await admin.setBrokerRole(nodeId, 'draining')
    const began = performance.now()
    await cluster.until('both are drained', PATIENCE_MS, (info) =>
      info.brokers.every(({ role, shards }) => role === 'member' || shards === 0),
    )
    this.print(`drained after ${secondsSince(began)} s`)
    for (const { nodeId } of going) await admin.setBrokerRole(nodeId, 'removed')
    await Promise.all(leaving.map((broker) => broker.ended()))
  }

  /** Until it is even as each of the brokers sees it, which is told with what the clients have met meanwhile. */
  async even(what: string, members: number): Promise<void> {
    const { cluster, load } = this
    const began = performance.now()
    let last: ClusterInfo | undefined
    for (const { address } of cluster.brokers) {
      last = await cluster.until(what, PATIENCE_MS, (info) => isEven(info, members), [address])
    }
    const took = performance.now() - began
    const shares = membersOf(last).map(({ shards, leads }) => `${shards}/${leads}`)
    this.print(
      `${what}: even after ${secondsSince(began)} s, shards held/led ${shares.join(' ')}; ${this.met()}`,
    )
    if (took > EVEN_MS) load.violations.push(`${what}: even only after ${secondsSince(began)} s`)
  }

  private met(): string {
    const { calls, latenciesMs } = this.load.next()
    latenciesMs.sort((a, b) => a - b)
    const at = (part: number): string =>
      (latenciesMs[Math.min(calls - 1, Math.floor(part * calls))] ?? 0).toFixed(0)
    return calls === 0
      ? 'no load'
      : `${calls} calls, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`
  }

  async verify(): Promise<void> {
    const { cluster, load } = this
    for (const { address } of cluster.brokers) {
      await using client = new EastGuard({ seeds: [address] })
      const there = new Set(await client.admin().listTopics())
      const missing = [...load.kept].filter((topic) => !there.has(topic))
      const surplus = [...there].filter((topic) => !load.kept.has(topic))
      if (missing.length > 0) load.violations.push(`${address} lacks ${missing.join()}`)
      if (surplus.length > 0) load.violations.push(`${address} still has ${surplus.join()}`)
    }
  }
}

function membersOf(info: ClusterInfo | undefined): ClusterInfo['brokers'] {
  return (info?.brokers ?? []).filter(({ role, state }) => role === 'member' && state === 'alive')
}

function isEven(info: ClusterInfo, members: number): boolean {
  const present = membersOf(info)
  if (present.length !== members || info.shardsLed < info.shards) return false
  const copies = present.reduce((sum, { shards }) => sum + shards, 0)
  if (copies !== BASE * info.shards) return false
  const near = (share: number, mean: number): boolean =>
    Math.abs(share - mean) <= EVEN_WITHIN * mean
  return present.every(
    ({ shards, leads }) => near(shards, copies / members) && near(leads, info.shards / members),
  )
}

function rotated(seeds: readonly string[], by: number): readonly string[] {
  const at = by % seeds.length
  return [...seeds.slice(at), ...seeds.slice(0, at)]
}

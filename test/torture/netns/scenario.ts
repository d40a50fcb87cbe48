// Three brokers, each on a host of its own, whose hosts are cut apart and joined again while clients write. Run inside a sandbox.
//
//   links    whole ── cut ─────────────── mended ── whole
//   writers  ├─ those that reach a majority go on ──────────┤ everything acknowledged is read, from each replica
//   islander     ├─ cut off with its host: it is told so ─┤├─ it can write again
//
// No broker is started anew: what was cut apart comes together by itself.

import { type Prng, prng } from '../../../src/base/prng.ts'
import { EastGuard } from '../../../src/index.ts'
import { type LocalBroker, LocalCluster } from '../../support/local-cluster.ts'
import { pause, secondsSince } from '../../support/time.ts'
import { Waits } from '../metadata/waits.ts'
import { cut, type Fault, last, type Roles } from './faults.ts'
import { type Host, Hosts } from './hosts.ts'
import { Islander, type Told } from './islander.ts'
import { TopicLoad } from './load.ts'

const BROKERS = 3
const TOPICS = ['apart-a', 'apart-b', 'apart-c', 'apart-d']
const PARTITIONS = 2
/** One, so that it is known who leads it: the broker that leads any. */
const FLAGS = ['--metadata-shards=1', '--default-segment-bytes=1MiB', '--log-level=info']
/** What a majority may be held up for: a lease, an election, a fence and a roll. */
const GAP_MS = 10_000
/** When who is cut off is told so. */
const TOLD_MS = 5000
/** Of a lease, and of what a timer may be late. */
const LAPSED_MS = 2500
const WHOLE_MS = 60_000
const LOG_CHARS = 6000

export interface Apart {
  readonly faults: readonly Fault[]
  readonly rounds: number
  readonly seed: number
  readonly print: (line: string) => void
}

/** Resolves with the code to end with. */
export async function tortureApart(options: Apart): Promise<number> {
  const { faults, rounds, print } = options
  const violations: string[] = []
  const hosts = await Hosts.make(BROKERS)
  const cluster = await LocalCluster.form({ brokers: BROKERS, flags: FLAGS, places: hosts.all })
  const run = new Run(options, hosts, cluster, violations)
  try {
    await run.begin()
    for (let n = 1; n <= rounds; n++) {
      for (const fault of faults) if (violations.length === 0) await run.round(n, fault)
    }
  } catch (error) {
    violations.push(`it could not go on: ${String(error)}`)
  } finally {
    await run.end()
    if (violations.length > 0) for (const log of logsOf(cluster)) print(log)
    const kept = await cluster.close({ keep: violations.length > 0 })
    if (kept !== undefined) print(`the data directories were kept: ${kept}`)
    hosts.close()
  }
  print(`${rounds} rounds of ${faults.join(', ')}: ${violations.length} violations`)
  for (const violation of violations.slice(0, 20)) print(`  ${violation}`)
  return violations.length > 0 ? 1 : 0
}

class Run {
  private readonly options: Apart
  private readonly hosts: Hosts
  private readonly cluster: LocalCluster
  private readonly violations: string[]
  private readonly random: Prng
  private readonly client: EastGuard
  private readonly waits: Waits
  private readonly loads: TopicLoad[] = []
  private readonly islanders = new Map<Host, Islander>()
  /** What islanders have been told, by topic. */
  private readonly told = new Map<string, Told[]>()
  private values = 0

  constructor(options: Apart, hosts: Hosts, cluster: LocalCluster, violations: string[]) {
    this.options = options
    this.hosts = hosts
    this.cluster = cluster
    this.violations = violations
    this.random = prng(options.seed)
    this.client = new EastGuard({ seeds: cluster.seeds })
    this.waits = new Waits(() => cluster.brokers.map((broker) => broker.process?.child.pid))
  }

  async begin(): Promise<void> {
    const { client, options, cluster } = this
    for (const [i, topic] of TOPICS.entries()) {
      await client.admin().createTopic(topic, { policy: { partitions: PARTITIONS } })
      this.loads.push(new TopicLoad(topic, options.seed * TOPICS.length + i, client))
    }
    for (const host of this.hosts.all) this.islanders.set(host, new Islander(host, cluster.seeds))
  }

  async end(): Promise<void> {
    await this.hosts.mendAll()
    this.waits.stop()
    for (const islander of this.islanders.values()) islander.close()
    for (const load of this.loads) load.stop().catch(() => {})
    await this.client.close()
  }

  async round(n: number, fault: Fault): Promise<void> {
    const { hosts, random, violations, loads } = this
    await this.whole()
    const { topic, roles } = await this.cast()
    for (const load of loads) load.forget()
    for (const host of hosts.all) await this.writes(host, topic, 'before it was cut off')
    const sinceMs = performance.now()
    const { minority, majority } = await cut(fault, hosts, roles)
    const alone = minority === undefined ? [] : [this.isTold(minority, topic)]
    await Promise.all([last(fault, hosts, random), ...alone])
    const gap = majority ? this.judgeGap(fault, sinceMs) : ''
    await hosts.mendAll()
    const mendedMs = performance.now()
    for (const host of hosts.all) await this.writes(host, topic, 'when the links were mended')
    await this.whole()
    const healed = secondsSince(mendedMs)
    await this.verify()
    violations.push(...loads.flatMap(({ oracle }) => oracle.violations.splice(0)))
    const acknowledged = loads.reduce((sum, { oracle }) => sum + oracle.acknowledgements, 0)
    this.options.print(
      `round ${n}, ${fault}: ${acknowledged} acknowledged until now${gap}, whole again after ${healed} s`,
    )
  }

  /** A topic whose leader is not its coordinator. */
  private async cast(): Promise<{ topic: string; roles: Roles }> {
    const admin = this.client.admin()
    const [info, topics] = await Promise.all([
      admin.describeCluster(),
      admin.describeTopics(TOPICS),
    ])
    const coordinator = this.hostOf(info.brokers.find(({ leads }) => leads > 0)?.displayName)
    for (const { name, ranges } of topics) {
      const node = ranges[0]?.segments.at(-1)?.replicas[0]
      const leader = this.hostOf(info.brokers.find(({ nodeId }) => nodeId === node)?.displayName)
      if (leader !== coordinator) return { topic: name, roles: { leader, coordinator } }
    }
    throw new Error('all topics are led by their coordinator')
  }

  private hostOf(name: string | undefined): Host {
    const at = this.cluster.brokers.findIndex((broker) => broker.name === name)
    const host = this.hosts.all[at]
    if (host === undefined) throw new Error(`no host has a broker ${name}`)
    return host
  }

  /** Two writes of its client: one that begins as it is cut off, one when its lease is over. */
  private async isTold(host: Host, topic: string): Promise<void> {
    const first = this.write(host, topic, TOLD_MS)
    await pause(LAPSED_MS)
    for (const told of await Promise.all([first, this.write(host, topic, TOLD_MS)])) {
      const { offset, code, message, ms } = told
      if (offset !== undefined) {
        this.violations.push(`${host.host} is cut off, and was told that ${told.value} is written`)
      }
      this.options.print(`  ${host.host} was told after ${ms} ms: ${code} ${message}`)
    }
  }

  private async writes(host: Host, topic: string, when: string): Promise<void> {
    const { code, message, ms } = await this.write(host, topic, WHOLE_MS)
    if (code === undefined) return
    this.violations.push(`${host.host} cannot write ${when}: ${code} after ${ms} ms: ${message}`)
  }

  private async write(host: Host, topic: string, timeoutMs: number): Promise<Told> {
    const islander = this.islanders.get(host)
    if (islander === undefined) throw new Error(`nobody is on ${host.host}`)
    const value = `${host.host} ${++this.values}`
    const told = await islander.write({ topic, value, timeoutMs })
    this.told.set(topic, [...(this.told.get(topic) ?? []), told])
    return told
  }

  private judgeGap(fault: Fault, sinceMs: number): string {
    const gaps = this.loads.map((load) => load.longestGap(sinceMs, performance.now()))
    const longest = gaps.reduce((a, b) => (b.toMs - b.fromMs > a.toMs - a.fromMs ? b : a))
    const ms = Math.round(longest.toMs - longest.fromMs)
    const starvedMs = Math.round(this.waits.between(longest.fromMs, longest.toMs))
    const told = `${ms} ms (${starvedMs} for a processor)`
    if (ms > GAP_MS + starvedMs) {
      this.violations.push(`${fault}: who reaches a majority was not answered for ${told}`)
    }
    return `, longest gap ${told}`
  }

  /** Settled, as each broker sees it, and with all replicas. */
  private async whole(): Promise<void> {
    await this.cluster.whole(WHOLE_MS)
    for (const { name, address } of this.cluster.brokers) {
      await this.cluster.until(`a settled cluster at ${name}`, WHOLE_MS, undefined, [address])
    }
  }

  /** What was acknowledged, from each replica in turn. */
  private async verify(): Promise<void> {
    const { cluster, loads } = this
    for (const { name } of cluster.brokers) {
      await using client = new EastGuard({ seeds: cluster.seeds, hostLabel: name })
      for (const load of loads) await load.verify(client)
      for (const [topic, told] of this.told) await this.verifyIslanders(client, topic, told, name)
    }
  }

  private async verifyIslanders(
    client: EastGuard,
    topic: string,
    told: readonly Told[],
    at: string,
  ): Promise<void> {
    const found = new Map<string, number>()
    for await (const { offset, value } of client.consumer({
      topic,
      partitions: [1],
      stopAtEnd: true,
    })) {
      const text = Buffer.from(value ?? []).toString()
      if (found.has(text)) this.violations.push(`${topic} at ${at}: '${text}' is there twice`)
      found.set(text, offset)
    }
    for (const { value, offset } of told) {
      if (offset === undefined || found.get(value) === offset) continue
      const instead = found.has(value) ? `at ${found.get(value)}` : 'nowhere'
      this.violations.push(`${topic} at ${at}: '${value}' is ${instead}, not at ${offset}`)
    }
  }
}

function logsOf(cluster: LocalCluster): readonly string[] {
  return cluster.brokers.map(
    ({ name, process }: LocalBroker) =>
      `${name} has said:\n${process?.log().slice(-LOG_CHARS) ?? ''}`,
  )
}

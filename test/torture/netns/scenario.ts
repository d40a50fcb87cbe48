// Three brokers, each on a host of its own, whose hosts are cut apart and joined again while clients write. Run inside a sandbox.
//
//   links    whole ── cut ─────────────── mended ── whole
//   writers  ├─ those that reach a majority go on ──────────┤ everything acknowledged is read, from each replica
//   islander     ├─ cut off with its host: it is told so ─┤├─ it can write again
//
// No broker is started anew: what was cut apart comes together by itself.

import { type Prng, prng } from '../../../src/base/prng.ts'
import type { BrokerInfo } from '../../../src/client/api.ts'
import { EastGuard } from '../../../src/index.ts'
import { LocalCluster } from '../../support/local-cluster.ts'
import { pause, secondsSince } from '../../support/time.ts'
import { Waits } from '../metadata/waits.ts'
import { cut, DATA_PORT, type Fault, last, type Roles } from './faults.ts'
import { type Host, Hosts } from './hosts.ts'
import { Islander, type Told } from './islander.ts'
import { TopicLoad } from './load.ts'

const BROKERS = 3
/** Of a round. Their leaders are spread. */
const TOPICS = 4
const PARTITIONS = 2
/** One, so that it is known who leads it: the broker that leads any. */
const FLAGS = [
  '--metadata-shards=1',
  '--default-segment-bytes=1MiB',
  `--data-port=${DATA_PORT}`,
  '--log-level=info',
]
/** Of a lease, and of what a timer may be late. */
const LAPSED_MS = 2500
const WHOLE_MS = 60_000

/** Who is who in a round. */
interface Cast {
  readonly topic: string
  readonly roles: Roles
}

export interface Apart {
  readonly faults: readonly Fault[]
  readonly rounds: number
  readonly seed: number
  readonly logChars: number
  /** Data lies below this. */
  readonly parent: string
  readonly print: (line: string) => void
}

/** Resolves with the code to end with. */
export async function tortureApart(options: Apart): Promise<number> {
  const { faults, rounds, parent, print } = options
  const violations: string[] = []
  const hosts = await Hosts.make(BROKERS)
  const places = hosts.all
  const cluster = await LocalCluster.form({ brokers: BROKERS, flags: FLAGS, places, parent })
  const run = new Run(options, hosts, cluster, violations)
  try {
    run.begin()
    for (let n = 1; n <= rounds; n++) {
      for (const fault of faults) if (violations.length === 0) await run.round(n, fault)
    }
  } catch (error) {
    violations.push(`it could not go on: ${String(error)}`)
  } finally {
    await run.end()
    if (violations.length > 0) for (const log of cluster.logs(options.logChars)) print(log)
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
  /** Of this round. */
  private loads: readonly TopicLoad[] = []
  private readonly islanders = new Map<Host, Islander>()
  /** What islanders have been told, by topic. */
  private readonly told = new Map<string, Told[]>()
  private made = 0
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

  begin(): void {
    const { hosts, cluster, islanders } = this
    for (const host of hosts.all) islanders.set(host, new Islander(host, cluster.seeds))
  }

  async end(): Promise<void> {
    await this.hosts.mendAll()
    this.waits.stop()
    for (const islander of this.islanders.values()) islander.close()
    for (const load of this.loads) load.stop().catch(() => {})
    await this.client.close()
  }

  async round(n: number, fault: Fault): Promise<void> {
    const { hosts, random, violations } = this
    await this.whole()
    const loads = await this.begins()
    const cast = await this.cast()
    const { topic, roles } = cast
    for (const host of hosts.all) await this.writes(host, topic, 'before it was cut off')
    // So that its hasty producer has an id.
    for (const host of hosts.all) await this.write(host, topic, false)
    const sinceMs = performance.now()
    const { minority, gapMs } = await cut(fault, hosts, roles)
    const alone = minority === undefined ? '' : this.isTold(minority, cast)
    const [, islander] = await Promise.all([last(fault, hosts, random), alone])
    const gap = gapMs === undefined ? '' : this.judgeGap(fault, sinceMs, gapMs)
    await hosts.mendAll()
    const mendedMs = performance.now()
    for (const host of hosts.all) await this.writes(host, topic, 'when the links were mended')
    await this.whole()
    const healed = secondsSince(mendedMs)
    await Promise.all(loads.map((load) => load.stop()))
    await this.verify()
    await this.ends()
    violations.push(...loads.flatMap(({ oracle }) => oracle.violations.splice(0)))
    const acknowledged = loads.reduce((sum, { oracle }) => sum + oracle.acknowledgements, 0)
    this.options.print(
      `round ${n}, ${fault}: ${acknowledged} acknowledged${gap}${islander}, whole again after ${healed} s`,
    )
  }

  /** Topics of this round, and those who write to them. */
  private async begins(): Promise<readonly TopicLoad[]> {
    const { client, options } = this
    const loads: TopicLoad[] = []
    for (let i = 0; i < TOPICS; i++) {
      const topic = `apart-${++this.made}`
      await client.admin().createTopic(topic, { policy: { partitions: PARTITIONS } })
      loads.push(new TopicLoad(topic, options.seed * 1000 + this.made, client))
    }
    this.loads = loads
    this.told.clear()
    return loads
  }

  /** Were they left, a broker that leads few of them since it was cut off would lead all of the next round: the coordinator, as like as not. */
  private async ends(): Promise<void> {
    const admin = this.client.admin()
    for (const { topic } of this.loads) await admin.deleteTopic(topic)
  }

  /** A topic whose leader is not its coordinator. */
  private async cast(): Promise<Cast> {
    const admin = this.client.admin()
    const names = this.loads.map(({ topic }) => topic)
    const [info, topics] = await Promise.all([admin.describeCluster(), admin.describeTopics(names)])
    const host = (is: (broker: BrokerInfo) => boolean): Host =>
      this.hostOf(info.brokers.find(is)?.displayName)
    const coordinator = host(({ leads }) => leads > 0)
    for (const { name, ranges } of topics) {
      const node = ranges[0]?.segments.at(-1)?.replicas[0]
      const leader = host(({ nodeId }) => nodeId === node)
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
  private async isTold(host: Host, { topic, roles }: Cast): Promise<string> {
    const first = this.write(host, topic, false)
    await pause(LAPSED_MS)
    const both = await Promise.all([first, this.write(host, topic, false)])
    for (const { value, offset, code, message = '' } of both) {
      if (offset !== undefined) {
        this.violations.push(`${host.host} is cut off, and was told that ${value} is written`)
      } else if (!told(host === roles.leader).test(message)) {
        this.violations.push(
          `${host.host} is cut off, and was told no more than ${code}: ${message}`,
        )
      }
    }
    return `, who is cut off told after ${both.map(({ ms }) => `${ms} ms`).join(' and ')}`
  }

  private async writes(host: Host, topic: string, when: string): Promise<void> {
    const { code, message, ms } = await this.write(host, topic, true)
    if (code === undefined) return
    this.violations.push(`${host.host} cannot write ${when}: ${code} after ${ms} ms: ${message}`)
  }

  private async write(host: Host, topic: string, patient: boolean): Promise<Told> {
    const islander = this.islanders.get(host)
    if (islander === undefined) throw new Error(`nobody is on ${host.host}`)
    const value = `${host.host} ${++this.values}`
    const told = await islander.write({ topic, value, patient })
    this.told.set(topic, [...(this.told.get(topic) ?? []), told])
    return told
  }

  private judgeGap(fault: Fault, sinceMs: number, gapMs: number): string {
    const gaps = this.loads.map((load) => load.longestGap(sinceMs, performance.now()))
    const longest = gaps.reduce((a, b) => (b.toMs - b.fromMs > a.toMs - a.fromMs ? b : a))
    const ms = Math.round(longest.toMs - longest.fromMs)
    const starvedMs = Math.round(this.waits.between(longest.fromMs, longest.toMs))
    const told = `${ms} ms (${starvedMs} for a processor)`
    if (ms > gapMs + starvedMs) {
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

/** That the broker does not lead as far as it knows, or, where it is another's client, that the leader does not answer. */
function told(leads: boolean): RegExp {
  return leads
    ? /NOT_LEADER|METADATA_UNAVAILABLE|may or may not be stored/
    : /got no answer from|CONNECTION_|METADATA_UNAVAILABLE|may or may not be stored/
}

// One run of one plan: brokers that nobody tells of one another, clients that make and change topics all the while, and an
// operator who drains and removes. Judged are: histories of metadata operations, which must be linearizable (../linear); every
// step of the shards' members (watch.ts); node numbers (operator.ts); and, after the faults, that all is as it should be
// (goal.ts), works at every broker, and stays so. A run is the same to the letter each time.

import { Faults } from '../cluster/faults.ts'
import { MetadataClient } from '../cluster/metadata-client.ts'
import { brokerHost, type Step } from '../cluster/step.ts'
import { type Loop, Stage } from '../stage.ts'
import { Brokers } from './brokers.ts'
import { Comings } from './comings.ts'
import { type Goal, missingOfShards, missingOfView } from './goal.ts'
import { Operator } from './operator.ts'
import { CALM_AT_MS, type MembershipPlan, RUN_MS } from './plan.ts'
import type { ComingStep, MembershipStep } from './step.ts'
import { Watch } from './watch.ts'

export interface MembershipOutcome {
  readonly violations: readonly string[]
  readonly story: readonly string[]
  readonly operations: number
  readonly answered: number
  readonly virtualMs: number
  /** Changes of the voters of shards. */
  readonly moves: number
  readonly hits: Readonly<Record<string, number>>
}

const START_MS_MAX = 60_000
/** After the last fault all is as it should be within this. */
const CONVERGE_MS = 100_000
/** Until a broker that cannot be reached is nobody's leader any more. */
const HOLE_MS = 5000
/** Of whom then asks others. */
const ANSWER_MS_MAX = 1000
/** A broker that is asked to stop has stopped within this. */
const STOP_MS = 6000
/** So long after all have started anew nothing has been moved. */
const STILL_MS = 8000
const COMINGS: ReadonlySet<string> = new Set<ComingStep['kind']>([
  'join',
  'retire',
  'replace',
  'mistake',
  'drain',
  'undrain',
  'remove',
  'mass-restart',
])

export async function runMembership(plan: MembershipPlan, loop: Loop): Promise<MembershipOutcome> {
  const run = new Run(plan, loop)
  await run.whole()
  return run.outcome()
}

class Run extends Stage {
  private readonly plan: MembershipPlan
  private readonly brokers: Brokers
  private readonly faults: Faults
  private readonly watch: Watch
  private readonly operator: Operator
  private readonly comings: Comings
  private readonly clients: readonly MetadataClient[]
  private readonly hosts: readonly string[]

  constructor(plan: MembershipPlan, loop: Loop) {
    const { packetLoss, packetDoubling, shards, tidy } = plan
    super(plan.seed, loop, { packetLoss, packetDoubling })
    const { world } = this
    this.plan = plan
    this.brokers = new Brokers(world, plan, this)
    const machines = this.brokers.all
    this.hosts = [...machines.map(({ host }) => host), ...plan.clients, 'operator']
    const { hosts } = this
    this.faults = new Faults({ world, machines, hosts, watcher: this, onDiskLost: () => {} })
    this.watch = new Watch({
      world,
      machines: () => this.brokers.members.map((broker) => this.brokers.machine(broker)),
      shards,
      watcher: this,
      linksAreBad: () => this.faults.linksAreBad,
    })
    const { ports } = world.process('operator')
    this.operator = new Operator({ ports, brokers: machines.length, watcher: this })
    this.clients = plan.clients.map((host, i) => this.client(host, i))
    this.comings = new Comings({
      world,
      brokers: this.brokers,
      watch: this.watch,
      operator: this.operator,
      watcher: this,
      tidy,
      clientsKnow: () => this.clients.every(({ done }) => done > 0),
    })
  }

  private client(host: string, index: number): MetadataClient {
    const { world, plan } = this
    return new MetadataClient({
      host,
      realm: { name: 'topic', brokers: plan.brokers.map((_, broker) => broker), life: 1 },
      ports: world.process(host).ports,
      seed: plan.seed * 31 + index,
      nowMs: () => world.clock.monotonic(),
      thinkMsMax: plan.thinkMsMax,
      watcher: this,
    })
  }

  async whole(): Promise<void> {
    const { plan, brokers, watch, operator } = this
    const { clock } = this.world
    for (const [broker, { startsAtMs }] of plan.brokers.entries()) {
      if (startsAtMs !== undefined) clock.after(startsAtMs, () => brokers.join(broker))
    }
    watch.start()
    const first = plan.brokers.filter(({ startsAtMs }) => startsAtMs !== undefined).length
    const up = (): boolean => brokers.members.filter((one) => this.isReady(one)).length === first
    await this.until('the first brokers have found one another', up, START_MS_MAX)
    await this.untilAll('the operator sees the cluster', [this.untilAnswered(0)], START_MS_MAX)
    operator.start()
    const begin = clock.monotonic()
    for (const step of plan.steps) clock.after(step.atMs, () => this.take(step))
    clock.after(CALM_AT_MS, () => this.calm())
    const work = this.clients.map((client) => client.work(begin + RUN_MS))
    await this.untilAll('all clients have ended', work, RUN_MS + START_MS_MAX)
    await this.untilAllIsWell()
    if (plan.ending === 'black hole' && this.mayHideOne()) await this.hideOne()
    else await this.restart()
    this.judgeHistories(this.clients.flatMap(({ attempts }) => attempts))
  }

  private take(step: MembershipStep): void {
    if (!COMINGS.has(step.kind)) {
      this.faults.take(step as Step)
      return
    }
    if (this.comings.take(step as ComingStep)) this.faults.hit(step.kind)
  }

  private calm(): void {
    this.say('the faults end')
    const { brokers, faults } = this
    brokers.all.forEach((_, broker) => {
      if (brokers.isSpare(broker)) brokers.join(broker)
    })
    faults.calm()
  }

  private isReady(broker: number): boolean {
    return this.brokers.machine(broker).ready
  }

  /** A single connection may get lost on any day. */
  private async untilAnswered(broker: number): Promise<void> {
    while ((await this.operator.describe(broker)) === undefined) await this.pause(200)
  }

  // How it should be.

  private goal(): Goal {
    const { brokers, comings } = this
    const live = brokers.members.flatMap((broker) => {
      const node = brokers.nodeOf(broker)
      return node === undefined ? [] : [[node, brokerHost(broker)] as const]
    })
    const { copies, vnodes } = brokers
    return { live: new Map(live), roleOf: (node) => comings.roleOf(node), copies, vnodes }
  }

  /** What is missing yet, by looking at the shards. */
  private missing(): string | undefined {
    const { brokers, comings, watch } = this
    if (!comings.done) return 'the operator has not got what was asked for'
    const down = brokers.members.find((broker) => !this.isReady(broker))
    if (down !== undefined) return `${brokerHost(down)} is not up`
    const kept = watch.settled
    return kept === undefined ? 'a shard is not settled' : missingOfShards(this.goal(), kept)
  }

  private async untilAllIsWell(): Promise<void> {
    const untilMs = this.world.clock.monotonic() + CONVERGE_MS
    await this.untilWell(() => this.missing(), CONVERGE_MS)
    const views = this.brokers.members.map((broker) => this.untilSeen(broker, untilMs))
    await this.untilAll('every broker sees the cluster as it is', views, 2 * CONVERGE_MS)
    const proofs = this.brokers.members.map((broker, i) => {
      const client = this.clients[i % this.clients.length] as MetadataClient
      return client.prove(broker, untilMs)
    })
    await this.untilAll('everything works everywhere', proofs, 2 * CONVERGE_MS)
  }

  private async untilSeen(broker: number, untilMs: number): Promise<string | undefined> {
    const { clock } = this.world
    for (;;) {
      const missing = missingOfView(this.goal(), await this.operator.describe(broker))
      if (missing === undefined) return undefined
      if (clock.monotonic() > untilMs) return `${brokerHost(broker)}: ${missing}`
      await this.pause(200)
    }
  }

  // The endings.

  private get hidden(): number {
    const { members } = this.brokers
    return members[this.plan.seed % members.length] as number
  }

  /** Who has been taken away for ever may still be a voter, where nobody could take its place: with two lost of three nobody answers. */
  private mayHideOne(): boolean {
    const { brokers, watch } = this
    const there = new Set(brokers.members.map((broker) => brokers.nodeOf(broker)))
    const hidden = brokers.nodeOf(this.hidden)
    return (
      watch.settled?.every(({ view }) => view.members.voters.length >= 3) === true &&
      hidden !== undefined &&
      watch.affords(hidden, (node) => !there.has(node))
    )
  }

  /** Packets to and from one broker get lost, and so do connections, without a word: the others answer as ever. */
  private async hideOne(): Promise<void> {
    const { brokers, faults, hidden } = this
    const { members } = brokers
    const asked = this.clients.slice(0, 1)
    const proofs = (untilMs: number): readonly Promise<string | undefined>[] =>
      members.flatMap((broker) =>
        broker === hidden ? [] : asked.map((client) => client.prove(broker, untilMs)),
      )
    // A connection that its broker has given up in the trouble is found out by asking.
    const now = this.world.clock.monotonic()
    await this.untilAll('everybody is asked', proofs(now + CONVERGE_MS), 2 * CONVERGE_MS)
    for (const host of this.hosts) {
      if (host !== brokerHost(hidden)) faults.cutForEver(brokerHost(hidden), host)
    }
    await this.untilAll('time passes', [this.pause(HOLE_MS)], 2 * HOLE_MS)
    const began = this.world.clock.monotonic()
    const what = `${brokerHost(hidden)} cannot be reached, and the others work`
    await this.untilAll(what, proofs(0), CONVERGE_MS)
    for (const { attempts } of asked) {
      const slow = attempts.find(
        ({ callMs, returnMs }) => callMs >= began && (returnMs ?? 0) - callMs > ANSWER_MS_MAX,
      )
      if (slow !== undefined) this.violation(`${what}, but ${slow.operation.kind} waits for it`)
    }
  }

  /** Everybody comes back in time: nothing is moved. */
  private async restart(): Promise<void> {
    const { brokers, comings, plan, watch } = this
    const before = watch.moves
    const gently = plan.seed % 2 === 0
    this.say('all are started anew')
    const { seed, replaceMs } = plan
    const last = brokers.members.at(-1)
    // The others may find everything at rest long before the last one comes.
    const downMs = (broker: number): number =>
      seed % 4 < 2
        ? 1 + ((seed * 7 + broker * 1009) % (replaceMs / 2))
        : broker === last
          ? replaceMs / 2
          : 1
    comings.restartAll(
      brokers.all.map((_, broker) => downMs(broker)),
      gently,
    )
    await this.untilAll('all stop', [this.pause(STOP_MS)], 2 * STOP_MS)
    const up = (): boolean => brokers.members.every((one) => this.isReady(one))
    await this.until('all are up again', up, START_MS_MAX)
    await this.untilAll('time passes', [this.pause(STILL_MS)], 2 * STILL_MS)
    const moves = watch.moves - before
    if (moves > 0) this.violation(`all came back, and the voters of shards changed ${moves} times`)
    await this.untilAllIsWell()
  }

  outcome(): MembershipOutcome {
    return {
      violations: this.wrong,
      story: this.story,
      operations: this.clients.reduce((sum, { attempts }) => sum + attempts.length, 0),
      answered: this.clients.reduce((sum, { done }) => sum + done, 0),
      virtualMs: this.world.clock.monotonic(),
      moves: this.watch.moves,
      hits: { ...Object.fromEntries(this.faults.hits), ...this.world.network.counts },
    }
  }
}

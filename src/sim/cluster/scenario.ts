// One run of one plan: whole brokers on machines of their own, and clients by the SDK, on one network.
//
//   brokers start ─> clients at work, the plan's steps each at its time ──────────────────────> 60 s ─> all is judged
//                      liveness: at 40 s trouble ends, and within a bound everything must work again [I14]
//
// Judged are: histories of metadata operations, which must be linearizable (../linear); records, by ../judge.ts; brokers' copies
// of the metadata, by copies.ts; and in the mode of liveness that every broker does what it is asked for. A run is the same to
// the letter each time.

import { Judge } from '../judge.ts'
import { type Loop, Stage } from '../stage.ts'
import { Copies } from './copies.ts'
import { Faults } from './faults.ts'
import { Machines } from './machines.ts'
import { Membership } from './membership.ts'
import { MetadataClient } from './metadata-client.ts'
import { CALM_AT_MS, type ClusterPlan, RUN_MS } from './plan.ts'
import { RecordClient } from './record-client.ts'
import { brokerHost, SHARDS } from './step.ts'

export interface ClusterOutcome {
  readonly violations: readonly string[]
  readonly story: readonly string[]
  /** Of clients: attempts at metadata, records sent and readings. */
  readonly operations: number
  /** Those that were answered with what was asked for. */
  readonly answered: number
  readonly virtualMs: number
  /** By kind of fault: how often it struck. */
  readonly hits: Readonly<Record<string, number>>
}

const START_MS_MAX = 30_000
/** After the last fault everything must work again within this. */
const CONVERGE_MS = 40_000
const LOOK_AT_COPIES_MS = 100

export async function runCluster(plan: ClusterPlan, loop: Loop): Promise<ClusterOutcome> {
  const run = new Run(plan, loop)
  await run.whole()
  return run.outcome()
}

class Run extends Stage {
  private readonly plan: ClusterPlan
  private readonly judge = new Judge()
  private readonly machines: Machines
  private readonly membership: Membership
  private readonly copies: Copies
  private readonly faults: Faults
  private readonly metadata: readonly MetadataClient[]
  private readonly records: readonly RecordClient[]

  constructor(plan: ClusterPlan, loop: Loop) {
    super(plan.seed, loop)
    this.plan = plan
    const machines = new Machines(this.world, plan, this)
    this.machines = machines
    const { all } = machines
    this.membership = new Membership(this.world, all, SHARDS, this)
    this.copies = new Copies(all, this)
    this.faults = new Faults({
      world: this.world,
      machines: all,
      membership: this.membership,
      hosts: [...all.map(({ host }) => host), ...plan.metadataClients, ...plan.recordClients],
      watcher: this,
      onDiskLost: () => {
        machines.diskLost()
        if (all.length === 1) this.copies.forget()
      },
    })
    const common = (host: string, i: number, salt: number) => ({
      host,
      ports: this.world.process(host).ports,
      seed: plan.seed * 31 + salt + i,
      nowMs: () => this.world.clock.monotonic(),
      watcher: this,
    })
    const realm = {
      name: 'topic',
      brokers: all.map((_, broker) => broker),
      get life(): number {
        return machines.metadataLife
      },
    }
    this.metadata = plan.metadataClients.map(
      (host, i) => new MetadataClient({ ...common(host, i, 0), realm }),
    )
    this.records = plan.recordClients.map(
      (host, i) =>
        new RecordClient({ ...common(host, i, 1000), number: i, judge: this.judge, machines }),
    )
  }

  async whole(): Promise<void> {
    const { clock } = this.world
    const { machines, membership } = this
    const [founder] = machines.all
    founder?.start()
    await this.until('the first broker is up', () => founder?.ready === true, START_MS_MAX)
    machines.found()
    membership.start()
    this.lookAtCopies()
    const begun = (): boolean => machines.ready && membership.settled
    await this.until('all brokers are up and keep their shards', begun, START_MS_MAX)
    const begin = clock.monotonic()
    for (const step of this.plan.steps) clock.after(step.atMs, () => this.faults.take(step))
    const live = this.plan.mode === 'liveness'
    clock.after(live ? CALM_AT_MS : RUN_MS, () => this.calm())
    const clients = [...this.metadata, ...this.records]
    const work = clients.map((client) => client.work(begin + RUN_MS))
    await this.untilAll('all clients have ended', work, RUN_MS + CONVERGE_MS)
    if (live) await this.proveAll()
    else await this.lookOnce()
    this.judgeHistories(this.metadata.flatMap(({ attempts }) => attempts))
  }

  private lookAtCopies(): void {
    this.copies.look()
    this.world.clock.after(LOOK_AT_COPIES_MS, () => this.lookAtCopies())
  }

  private calm(): void {
    const { faults, machines, membership, plan } = this
    this.say('the faults end')
    faults.calm()
    const cut = plan.mode === 'liveness' ? plan.lastingCut : undefined
    if (cut === undefined) return
    const cutNow = (): void => faults.cutForEver(brokerHost(cut[0]), brokerHost(cut[1]))
    // Where a disk was lost, a cut would take a second member away before the first has been replaced.
    if (machines.recordsLife === 1) cutNow()
    else this.when(() => machines.ready && membership.settled, cutNow)
  }

  /** All at once: each broker does what it is asked for, or any of them while two do not reach each other; all is read. */
  private async proveAll(): Promise<void> {
    const { machines, membership, plan } = this
    const untilMs = this.world.clock.monotonic() + CONVERGE_MS
    const cut: readonly number[] = plan.lastingCut ?? []
    const whole = machines.all.filter((_, broker) => !cut.includes(broker))
    await this.until('brokers are up again', () => whole.every(({ ready }) => ready), CONVERGE_MS)
    if (cut.length === 0) {
      await this.until('shards are kept by whom they should', () => membership.settled, CONVERGE_MS)
    }
    const proofs = this.metadata.map((client, i) => {
      const broker = i % machines.all.length
      return client.prove(cut.length === 0 ? broker : undefined, untilMs)
    })
    if (cut.length === 0) proofs.push(...this.records.map((client) => client.prove(CONVERGE_MS)))
    await this.untilAll('everything works again', proofs, 2 * CONVERGE_MS)
  }

  /** What can be read is right; nobody has to answer. */
  private async lookOnce(): Promise<void> {
    const looks = this.records.map((client) => client.prove(5000).then(() => {}))
    await this.untilAll('the last look', looks, CONVERGE_MS)
  }

  outcome(): ClusterOutcome {
    const attempts = this.metadata.reduce((sum, client) => sum + client.attempts.length, 0)
    const done = this.metadata.reduce((sum, client) => sum + client.done, 0)
    const readings = this.records.reduce((sum, client) => sum + client.readings, 0)
    const toEnd = this.records.reduce((sum, client) => sum + client.readToEnd, 0)
    return {
      violations: [...this.wrong, ...this.judge.violations],
      story: this.story,
      operations: attempts + this.judge.sent + readings,
      answered: done + this.judge.acknowledged + toEnd,
      virtualMs: this.world.clock.monotonic(),
      hits: { ...Object.fromEntries(this.faults.hits), ...this.world.network.counts },
    }
  }
}

// One run of one plan: five whole brokers, writers and readers by the SDK, and records that three brokers hold.
//
//   brokers find one another ─> topics are made ─> clients at work, steps at their times ────────> 60 s ─> all is judged
//                                 liveness: at 40 s trouble ends, and within a bound all is as it should be [I14]
//
// Judged are: records, by ../judge.ts [I1 I4 I5 I10 I11]; what lies on disks, by disks.ts [I2 I7]; what the metadata says of
// segments, by ends.ts [I3 I6 I14]; topics that come and go, by passing-topic.ts [I15]. A run is the same to the letter each time.

import type { Topic } from '../../core/metadata/types.ts'
import type { TopicId } from '../../model/ids.ts'
import { codeOf } from '../client-error.ts'
import { Faults } from '../cluster/faults.ts'
import type { Step } from '../cluster/step.ts'
import { Judge } from '../judge.ts'
import { Operator } from '../membership/operator.ts'
import { type Loop, Stage } from '../stage.ts'
import { brokersByRole, placed } from './aimed.ts'
import { Brokers } from './brokers.ts'
import { connect, PATIENCE_MS } from './client.ts'
import { DataFaults } from './data-faults.ts'
import { Disks, type Due } from './disks.ts'
import { Ends, missingOf } from './ends.ts'
import type { SegmentFiles } from './files.ts'
import { PassingTopic } from './passing-topic.ts'
import { BROKERS, CALM_AT_MS, type ReplicationPlan, RUN_MS, type TopicPlan } from './plan.ts'
import { Reader } from './reader.ts'
import type { AimedStep, DataStep, ReplicationStep } from './step.ts'
import { Writer } from './writer.ts'

export interface ReplicationOutcome {
  readonly violations: readonly string[]
  readonly story: readonly string[]
  readonly operations: number
  readonly acknowledged: number
  readonly read: number
  readonly virtualMs: number
  /** Sealed segments, and records that were looked for on disks. */
  readonly segments: number
  readonly looks: number
  readonly hits: Readonly<Record<string, number>>
}

const START_MS_MAX = 60_000
/** After the last fault all is as it should be within this. */
const CONVERGE_MS = 90_000
/** A replica that is dropped too soon may have what it lacks a moment later. */
const LOOK_MS = 20
const STOP_MS = 15_000
const DATA_STEPS: ReadonlySet<string> = new Set<DataStep['kind']>([
  'full',
  'flip',
  'flip-log',
  'drain',
])

export async function runReplication(
  plan: ReplicationPlan,
  loop: Loop,
): Promise<ReplicationOutcome> {
  const run = new Run(plan, loop)
  await run.whole()
  return run.outcome()
}

class Run extends Stage {
  private readonly plan: ReplicationPlan
  private readonly judge = new Judge()
  private readonly brokers: Brokers
  private readonly faults: Faults
  private readonly dataFaults: DataFaults
  private readonly operator: Operator
  private readonly disks: Disks
  private readonly ends: Ends
  private readonly writers: readonly Writer[]
  private readonly readers: readonly Reader[]
  private readonly passing: PassingTopic
  private readonly flipped = new Set<number>()
  /** Of topics, by name. */
  private readonly ids = new Map<string, TopicId>()

  constructor(plan: ReplicationPlan, loop: Loop) {
    super(plan.seed, loop)
    const { world } = this
    this.plan = plan
    this.brokers = new Brokers(world, plan, this)
    const machines = this.brokers.all
    const clients = [...plan.writers, ...plan.readers, { host: 'p1' }].map(({ host }) => host)
    this.faults = new Faults({
      world,
      machines,
      hosts: [...machines.map(({ host }) => host), ...clients, 'operator'],
      watcher: this,
      onDiskLost: (broker) => this.brokers.noteLoss(broker),
    })
    const { ports } = world.process('operator')
    this.operator = new Operator({ ports, brokers: BROKERS, watcher: this })
    this.dataFaults = new DataFaults({
      world,
      machines,
      operator: this.operator,
      watcher: this,
      onFlipped: (broker) => {
        this.brokers.noteLoss(broker)
        this.flipped.add(broker)
      },
    })
    const mayLack = (broker: number): boolean => this.brokers.mayLack(broker)
    const mayBeWrong = (broker: number): boolean => this.flipped.has(broker)
    this.disks = new Disks({ machines, watcher: this, mayLack, mayBeWrong })
    this.ends = new Ends({
      machines,
      watcher: this,
      onDropped: (key, { policy }, { endEntry = 0, replicas }) =>
        this.disks.mustRemain(key, endEntry, policy.replicationFactor, replicas),
    })
    const passer = 'p1'
    const number = plan.writers.length
    this.passing = new PassingTopic({ ...this.common(passer, 2000), host: passer, number })
    this.writers = plan.writers.map((writer, number) => this.writer(writer, number))
    this.readers = plan.readers.map((reader, number) => this.reader(reader, number))
  }

  private common(host: string, salt: number) {
    const { plan, judge, world } = this
    return {
      ports: world.process(host).ports,
      seed: plan.seed * 31 + salt,
      nowMs: () => world.clock.monotonic(),
      judge,
      watcher: this,
    }
  }

  private writer(plan: ReplicationPlan['writers'][number], number: number): Writer {
    return new Writer({
      ...this.common(plan.host, number),
      plan,
      number,
      topic: this.topic(plan.topic),
      beginOf: (topic, partition) => this.ends.beginOf(this.idOf(topic), partition),
      onAcknowledged: (name, topic, { partition, offset }) => {
        const id = this.idOf(topic)
        const sealed = this.ends.sealedHoldersOf(id, partition, offset)
        if (sealed !== undefined) {
          this.disks.mustHave(
            () => name,
            () => sealed,
            'acknowledged by a seal',
          )
          return
        }
        const due = (): Due => {
          const holders = this.ends.holdersOf(id, partition, offset)
          return holders === undefined ? topic.minInsync : [holders]
        }
        this.disks.mustHave(() => name, due, 'acknowledged')
      },
    })
  }

  private reader(plan: ReplicationPlan['readers'][number], number: number): Reader {
    return new Reader({
      ...this.common(plan.host, 1000 + number),
      plan,
      topic: this.topic(plan.topic),
      onRead: (value, { minInsync }) =>
        this.disks.mustHave(
          () => nameOf(value),
          () => minInsync,
          'read',
        ),
    })
  }

  private idOf({ name }: TopicPlan): TopicId {
    return this.ids.get(name) as TopicId
  }

  private topic(index: number): TopicPlan {
    return this.plan.topics[index] as TopicPlan
  }

  async whole(): Promise<void> {
    const { clock } = this.world
    const { brokers, plan } = this
    for (const machine of brokers.all) machine.start()
    await this.until('the brokers have found one another', () => brokers.ready, START_MS_MAX)
    // Nobody promises anything of a disk that is lost while the founder alone keeps the metadata.
    await this.until('the metadata has its members', () => this.isKept(), START_MS_MAX)
    await this.untilAll('topics are made', [this.makeTopics()], START_MS_MAX)
    this.look()
    const begin = clock.monotonic()
    for (const step of plan.steps) clock.after(step.atMs, () => this.take(step))
    const live = plan.mode === 'liveness'
    clock.after(live ? CALM_AT_MS : RUN_MS, () => this.calm())
    const following = this.readers.map((reader) => reader.work(begin + RUN_MS))
    const writing = this.writers.map((writer) => writer.work(begin + RUN_MS))
    writing.push(this.passing.work(begin + (live ? CALM_AT_MS : RUN_MS) - PATIENCE_MS))
    await this.untilAll('all writers have ended', writing, RUN_MS + START_MS_MAX)
    if (live) await this.proveAll()
    for (const reader of this.readers) reader.end()
    await this.untilAll('all readers have ended', following, START_MS_MAX)
    if (!live) await this.lookOnce()
    await this.compare(live)
  }

  private isKept(): boolean {
    const { all } = this.brokers
    return Array.from({ length: this.plan.shards }, (_, shard) => shard).every((shard) =>
      all.some(({ shards }) => {
        const view = shards?.view(shard)
        return view?.role === 'leader' && view.settled && view.members.voters.length >= 3
      }),
    )
  }

  private async makeTopics(): Promise<string | undefined> {
    const client = connect('operator', this.world.process('maker').ports)
    for (const topic of this.plan.topics) {
      const policy = {
        partitions: topic.partitions,
        rangeMode: 'fixed' as const,
        ranges: topic.ranges ?? 1,
        replicationFactor: topic.replicas,
        minInsyncReplicas: topic.minInsync,
        segmentEntries: topic.segmentEntries,
        retentionMs: -1,
      }
      const until = this.world.clock.monotonic() + START_MS_MAX
      for (;;) {
        try {
          const made = await client.admin().createTopic(topic.name, { policy, ifNotExists: true })
          this.ids.set(topic.name, made.topicId)
          break
        } catch (error) {
          const code = codeOf(error)
          if (this.world.clock.monotonic() > until) return code
          await this.pause(200)
        }
      }
    }
    return undefined
  }

  private take(step: ReplicationStep): void {
    if (step.kind === 'aimed') return this.aim(step)
    if (DATA_STEPS.has(step.kind)) {
      if (this.dataFaults.take(step as DataStep)) this.faults.hit(step.kind)
      return
    }
    if (step.kind === 'wipe') this.brokers.noteWiped(step.broker)
    this.faults.take(step as Step)
  }

  private aim({ range, steps }: AimedStep): void {
    const brokers = brokersByRole(this.brokers.all, this.idOf(this.topic(0)), range)
    if (brokers === undefined) return
    this.faults.hit('aimed')
    for (const step of steps) {
      this.world.clock.after(step.afterMs, () => this.take(placed(step, brokers)))
    }
  }

  private calm(): void {
    this.say('the faults end')
    this.dataFaults.calm()
    this.faults.calm()
  }

  private look(): void {
    this.ends.look()
    this.world.clock.after(LOOK_MS, () => this.look())
  }

  // In the end.

  private async proveAll(): Promise<void> {
    const { brokers, world } = this
    const untilMs = world.clock.monotonic() + CONVERGE_MS
    await this.untilWell(() => this.missing(), CONVERGE_MS)
    const proofs = this.writers.map((writer) => writer.prove(untilMs))
    await this.untilAll('everything can be written', proofs, CONVERGE_MS)
    const passes = this.readers.map((reader) => reader.pass(CONVERGE_MS))
    await this.untilAll('everything can be read', passes, CONVERGE_MS)
    const caughtUp = (): boolean => this.readers.every((reader) => reader.caughtUp)
    await this.until('those at the end have come to it', caughtUp, CONVERGE_MS)
    // Where it was written just now segments may have ended.
    await this.untilWell(() => this.missing(), CONVERGE_MS)
    this.say(`${brokers.all.length} brokers, ${this.ends.count} sealed segments, all is well`)
  }

  private missing(): string | undefined {
    const { brokers, operator, plan } = this
    brokers.renewRefused()
    const down = brokers.all.find(({ ready }) => !ready)
    if (down !== undefined) return `${down.host} is not up`
    if (operator.pending > 0) return 'the operator has not got what was asked for'
    const left = this.passing.left(brokers.all)
    if (left !== undefined) return left
    for (const { host, shards } of brokers.all) {
      if (shards === undefined) return `${host} does not know the metadata`
      const topics = new Map<string, Topic>()
      for (let shard = 0; shard < shards.count; shard++) {
        for (const [name, topic] of shards.copyOf(shard).state.topicsByName) topics.set(name, topic)
      }
      for (const topic of plan.topics) {
        const known = topics.get(topic.name)
        if (known === undefined) return `${host} does not know ${topic.name}`
        const missing = missingOf(known, topic, brokers.live)
        if (missing !== undefined) return `${host}: ${missing}`
      }
    }
    return undefined
  }

  /** What can be read is right; nobody has to answer. */
  private async lookOnce(): Promise<void> {
    const passes = this.readers.map((reader) => reader.pass(5000).then(() => {}))
    await this.untilAll('the last look', passes, CONVERGE_MS)
  }

  /** All stop, so that what they hold is in their files; of the live everyone has all that it should have. */
  private async compare(whole: boolean): Promise<void> {
    if (this.over) return
    const { all } = this.brokers
    const nodes = all.map(({ nodeId }) => nodeId)
    const topics = this.known()
    this.disks.mustKeep()
    if (whole) {
      const stopped = all.map((machine) => machine.stop(RUN_MS))
      await this.untilAll('all stop', stopped, STOP_MS)
      if (this.over) return
    }
    const files = this.disks.compare()
    if (!whole) return
    for (const [broker, held] of files.entries()) {
      const node = nodes[broker]
      if (node === undefined || this.flipped.has(broker)) continue
      for (const topic of topics) {
        for (const { range, segments } of topic.ranges) {
          for (const { segment, state, replicas, endEntry = 0 } of segments) {
            if (state !== 'sealed' || !replicas.includes(node)) continue
            const key = `${topic.topicId}/${range}/${segment}`
            this.mustHold(all[broker]?.host ?? '', key, endEntry, held)
          }
        }
      }
    }
  }

  private mustHold(host: string, key: string, endEntry: number, held: SegmentFiles): void {
    const entries = held.get(key)
    for (let entry = 0; entry < endEntry; entry++) {
      if (entries?.has(entry) === true) continue
      this.violation(`${host} lacks entry ${entry} of ${endEntry} of ${key}`)
      return
    }
    if ((entries?.size ?? 0) > endEntry) {
      this.violation(`${host} has ${entries?.size} entries of ${key}, which ended at ${endEntry}`)
    }
  }

  /** Topics by the first copy of the metadata that is there. */
  private known(): readonly Topic[] {
    const shards = this.brokers.all.find((machine) => machine.shards !== undefined)?.shards
    if (shards === undefined) return []
    return Array.from({ length: shards.count }, (_, shard) => [
      ...shards.copyOf(shard).state.topics.values(),
    ]).flat()
  }

  outcome(): ReplicationOutcome {
    const passes = this.readers.reduce((sum, reader) => sum + reader.passes, 0)
    return {
      violations: [...this.wrong, ...this.judge.violations],
      story: this.story,
      operations: this.judge.sent + passes,
      acknowledged: this.judge.acknowledged,
      read: this.judge.read,
      virtualMs: this.world.clock.monotonic(),
      segments: this.ends.count,
      looks: this.disks.looks,
      hits: {
        ...Object.fromEntries(this.faults.hits),
        ...this.world.network.counts,
        'topics deleted': this.passing.deleted,
      },
    }
  }
}

function nameOf(value: Uint8Array): string {
  const text = new TextDecoder().decode(value)
  return text.slice(0, text.indexOf('\n'))
}

// One run of one plan: the whole broker (storage, metadata journal, native door) and the SDK on simulated ports.
//
//   topics are made ─> the plan's steps, each at its time ─> faults end, everything settles ─> all is read
//     ─> power is cut, nothing unsynced stays ─> all is read again
//
// A run is the same to the letter each time. What is wrong is told in `violations`, what happened in `story`.

import { assert } from '../../base/assert.ts'
import { Judge } from '../judge.ts'
import type { Machine } from '../machine.ts'
import { type Loop, Stage } from '../stage.ts'
import { forgery, saltsOn } from './forgery.ts'
import { storageMachine } from './machine.ts'
import type { StoragePlan, TimedStep } from './plan.ts'
import { Workload } from './workload.ts'

export interface Outcome {
  readonly violations: readonly string[]
  readonly story: readonly string[]
  readonly sent: number
  readonly acknowledged: number
  readonly read: number
  readonly operations: number
  /** Disk operations up to the end of the faults. */
  readonly troubledOperations: number
}

/** After the last fault everything must have an outcome within this. */
const SETTLE_MS_MAX = 100_000
/** A mark that says what was synced is written when nothing has followed for 20 ms. */
const MARKED_AFTER_MS = 20

export async function runStorage(plan: StoragePlan, loop: Loop): Promise<Outcome> {
  const run = new Run(plan, loop)
  await run.whole()
  return run.outcome()
}

class Run extends Stage {
  protected override readonly eventsMax: number = 2_000_000
  private readonly plan: StoragePlan
  private readonly judge = new Judge()
  private readonly machine: Machine
  private readonly workload: Workload
  private troubledOperations = 0
  /** Of log files that the present process has not written: it must have chosen others. */
  private salts: readonly number[] = []

  constructor(plan: StoragePlan, loop: Loop) {
    super(plan.seed, loop)
    this.plan = plan
    this.machine = storageMachine(this.world, plan, this, () => {
      this.salts = saltsOn(this.machine.disk)
    })
    this.workload = new Workload(this.world, plan, this.judge, {
      say: (line) => this.say(line),
      violation: (what) => this.violation(what),
      mayBeDamaged: () => this.machine.rotten,
      diskFailures: () => this.machine.disk.failures,
      forgery: () => forgery(this.salts),
    })
  }

  async whole(): Promise<void> {
    const { machine, workload } = this
    for (const step of this.plan.steps) if (step.atMs < 0) this.take(step)
    machine.start()
    for (const [i, { atOnce }] of this.plan.topics.entries()) if (atOnce) workload.create(i)
    await this.until('the first topics are there', () => workload.settled, SETTLE_MS_MAX)
    const begin = this.world.clock.monotonic()
    for (const step of this.plan.steps) {
      if (step.atMs >= 0) this.world.clock.after(step.atMs, () => this.take(step))
    }
    const last = this.plan.steps.at(-1)?.atMs ?? 0
    const end = begin + last + 1
    this.world.clock.after(last + 1, () => {})
    await this.until('the plan is done', () => this.world.clock.monotonic() >= end, SETTLE_MS_MAX)
    this.calm()
    await this.until('everything has an outcome', () => workload.settled, SETTLE_MS_MAX)
    await this.readAll('after the faults')
    machine.kill({ keepUnsynced: false }, 1, 'loses its power for the last time')
    await this.until('the last start', () => machine.ready, SETTLE_MS_MAX)
    await this.readAll('after the last power cut')
    await this.checkDeleted()
  }

  /** Something is wrong, or there is nobody left to be asked. */
  protected override get over(): boolean {
    return super.over || this.machine.refuses
  }

  private async readAll(when: string): Promise<void> {
    if (this.over) return
    this.say(`all is read ${when}`)
    for (let i = 0; i < this.plan.topics.length; i++) this.workload.read(i)
    this.workload.checkTopics()
    await this.until(`all is read ${when}`, () => this.workload.settled, SETTLE_MS_MAX)
  }

  private async checkDeleted(): Promise<void> {
    if (this.over) return
    for (const id of this.workload.deleted) {
      const left = this.machine.disk.paths().filter((path) => path.includes(id))
      if (left.length > 0) this.violation(`a deleted topic left ${left.join(', ')}`)
    }
  }

  private take(step: TimedStep): void {
    const { machine, workload } = this
    switch (step.kind) {
      case 'send':
        workload.send(step)
        return
      case 'read':
        workload.read(step.topic)
        return
      case 'create':
        workload.create(step.topic)
        return
      case 'delete':
        workload.delete(step.topic)
        return
      case 'widen':
        workload.widen(step.topic, step.by)
        return
      case 'alter':
        workload.alter(step.topic, step.segmentEntries)
        return
      case 'kill':
        machine.kill({ keepUnsynced: true }, step.downMs, 'is killed')
        return
      case 'power-cut':
        machine.kill(
          { keepUnsynced: step.keep === 'some' ? 'some' : false },
          step.downMs,
          `loses its power, ${step.keep} of what was unsynced stays`,
        )
        return
      case 'crash-at-operation':
        this.crashAfter(step, [step.operations, ...(step.startsToo ?? [])])
        return
      case 'fail-sync':
      case 'fail-write':
        machine.failNext(step.kind === 'fail-sync' ? 'sync' : 'write', step.prefix)
        return
      case 'fail':
        machine.fail({ ...step, path: step.prefix })
        return
      case 'full':
        machine.setFull(true)
        this.world.clock.after(step.forMs, () => machine.setFull(false))
        return
      case 'slow':
        machine.slowDown(step.latencyMs, step.forMs)
        return
      case 'reset':
        this.say('network: all connections are reset')
        this.world.network.resetConnections('client')
        return
      case 'wall':
        this.say(`clock: is set by ${step.byMs} ms`)
        this.world.clock.shiftWall(step.byMs)
        return
      case 'stop':
        void machine.stop(step.downMs)
        return
      case 'rot':
        this.rot(step)
        return
    }
  }

  /** At the first of `operations`; then again at each of the others, counted from that crash. */
  private crashAfter(
    step: TimedStep & { kind: 'crash-at-operation' },
    [first, ...others]: readonly number[],
  ): void {
    if (first === undefined) return
    const { keep, downMs } = step
    const keepUnsynced = keep === 'all' ? true : keep === 'some' ? 'some' : false
    this.machine.crashAfter(first, () => {
      this.machine.kill({ keepUnsynced }, downMs, `crashes in a disk operation, ${keep} stays`)
      this.crashAfter(step, others)
    })
  }

  private rot({ when, prefix, file, byte, bit, downMs }: TimedStep & { kind: 'rot' }): void {
    const { machine, workload } = this
    const rot = (): void => machine.rot(prefix, file, byte, bit)
    if (when === 'running') rot()
    else if (when === 'stopped') void machine.stop(downMs, rot)
    else if (workload.settled && machine.ready) {
      this.world.clock.after(MARKED_AFTER_MS + machine.latencyMs + 1, () => {
        if (!workload.settled || !machine.ready) return
        machine.kill({ keepUnsynced: true }, downMs, 'is killed')
        rot()
      })
    }
  }

  private calm(): void {
    this.say('the faults end')
    this.troubledOperations = this.machine.disk.operations
    this.machine.calm()
  }

  outcome(): Outcome {
    const violations = [...this.wrong, ...this.judge.violations]
    assert(this.judge.acknowledged <= this.judge.sent, 'counts agree')
    return {
      violations,
      story: this.story,
      sent: this.judge.sent,
      acknowledged: this.judge.acknowledged,
      read: this.judge.read,
      operations: this.machine.disk.operations,
      troubledOperations: this.troubledOperations,
    }
  }
}

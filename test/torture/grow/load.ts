// Clients that make, look at and delete topics without a pause, each with names of its own, and now and then a name that two
// of them want at once. None of it may fail: there is always a majority of the brokers, and so each call has an answer
// within its deadline.

import { EastGuardError } from '../../../src/base/errors.ts'
import { EastGuard } from '../../../src/index.ts'
import { pause } from '../../support/time.ts'

const DEADLINE_MS = 10_000
const THINK_MS = 20
/** Every so many rounds a name is wanted by two. */
const RACE_EVERY = 5

/** What a phase of the run has seen. */
export interface Tally {
  calls: number
  readonly latenciesMs: number[]
}

export class Load {
  readonly violations: string[] = []
  /** Those that must be there. */
  readonly kept: Set<string> = new Set()
  tally: Tally = { calls: 0, latenciesMs: [] }
  private readonly working: Promise<void>[] = []
  private workers = 0
  private stopped = false

  /** One client more, with these seeds. */
  add(seeds: readonly string[]): void {
    this.working.push(this.work(`worker-${++this.workers}`, seeds))
  }

  /** What was counted until now. */
  next(): Tally {
    const { tally } = this
    this.tally = { calls: 0, latenciesMs: [] }
    return tally
  }

  async stop(): Promise<void> {
    this.stopped = true
    await Promise.all(this.working)
  }

  private async work(name: string, seeds: readonly string[]): Promise<void> {
    await using client = new EastGuard({ seeds })
    await using rival = new EastGuard({ seeds: seeds.toReversed() })
    for (let n = 1; !this.stopped; n++) {
      if (n % RACE_EVERY === 0) await this.race(client, rival, `${name}-race-${n}`)
      else await this.round(client, `${name}-${n}`, n % 2 === 0)
      await pause(THINK_MS)
    }
  }

  private async round(client: EastGuard, topic: string, keep: boolean): Promise<void> {
    const admin = client.admin()
    const options = { timeoutMs: DEADLINE_MS }
    const made = await this.timed(`creating ${topic}`, () =>
      admin.createTopic(topic, { ...options, policy: { partitions: 1 } }),
    )
    if (made === undefined) return
    await this.timed(`describing ${topic}`, () => admin.describeTopic(topic, options))
    if (keep) this.kept.add(topic)
    else await this.timed(`deleting ${topic}`, () => admin.deleteTopic(topic, options))
  }

  /** One of the two gets it. */
  private async race(one: EastGuard, other: EastGuard, topic: string): Promise<void> {
    const create = (client: EastGuard): Promise<string> =>
      client
        .admin()
        .createTopic(topic, { timeoutMs: DEADLINE_MS, policy: { partitions: 1 } })
        .then(
          () => 'made',
          (error: unknown) => (error instanceof EastGuardError ? error.code : String(error)),
        )
    const told = await Promise.all([create(one), create(other)])
    if (told.toSorted().join() === 'TOPIC_EXISTS,made') this.kept.add(topic)
    else this.violations.push(`${topic}, wanted by two: ${told.join(' and ')}`)
  }

  private async timed<T>(what: string, call: () => Promise<T>): Promise<T | undefined> {
    const began = performance.now()
    try {
      return await call()
    } catch (error) {
      this.violations.push(
        `${what} after ${Math.round(performance.now() - began)} ms: ${String(error)}`,
      )
      return undefined
    } finally {
      this.tally.calls++
      this.tally.latenciesMs.push(performance.now() - began)
    }
  }
}

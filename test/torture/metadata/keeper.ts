// Topics that are made and never deleted, one after another at one broker: each whose creation was answered must be there
// ever after, at every broker, under the id that was told. When each was asked for and answered tells how long metadata stood
// still.

import { EastGuard, EastGuardError } from '../../../src/index.ts'
import { pause } from '../../support/time.ts'

const CREATE_MS = 6000
const THINK_MS = 50
const LOOK_MS = 20_000
/** How many are asked for at a time. */
const LOOK_TOPICS = 200

/** What a creation under a new name never comes to: a retry knows what the first attempt did, and what is made stays. */
const IMPOSSIBLE: ReadonlySet<string> = new Set(['TOPIC_EXISTS', 'UNKNOWN_TOPIC'])

/** A creation, by performance.now(). */
export interface Creation {
  readonly name: string
  readonly beganMs: number
  readonly endedMs: number
  /** Why it failed. */
  readonly code: string | undefined
}

/** Between two successes. */
export interface Gap {
  readonly fromMs: number
  readonly toMs: number
}

export class Keeper {
  readonly violations: string[] = []
  /** Since it began last. */
  creations: Creation[] = []
  private readonly topics = new Map<string, string>()
  private readonly name: string
  private readonly seed: string
  private made = 0
  private working: Promise<void> = Promise.resolve()
  private stopped = true

  /** `name`: of its topics, with numbers behind. */
  constructor(name: string, seed: string) {
    this.name = name
    this.seed = seed
  }

  /** How many creations were answered. */
  get kept(): number {
    return this.topics.size
  }

  begin(): void {
    this.stopped = false
    this.creations = []
    this.working = this.work()
  }

  async stop(): Promise<void> {
    this.stopped = true
    await this.working
  }

  /** The longest time without a success, from then on until the last that has ended. */
  longestGap(sinceMs: number): Gap {
    let longest = { fromMs: sinceMs, toMs: sinceMs }
    let fromMs = sinceMs
    const last = this.creations.at(-1)
    for (const creation of this.creations) {
      const { endedMs, code } = creation
      if (endedMs < sinceMs || (code !== undefined && creation !== last)) continue
      if (endedMs - fromMs > longest.toMs - longest.fromMs) longest = { fromMs, toMs: endedMs }
      fromMs = endedMs
    }
    return longest
  }

  private async work(): Promise<void> {
    await using client = new EastGuard({ seeds: [this.seed] })
    while (!this.stopped) {
      const name = `${this.name}-${++this.made}`
      const beganMs = performance.now()
      const code = await this.make(client, name)
      this.creations.push({ name, beganMs, endedMs: performance.now(), code })
      await pause(THINK_MS)
    }
  }

  private async make(client: EastGuard, name: string): Promise<string | undefined> {
    try {
      const { topicId } = await client.admin().createTopic(name, { timeoutMs: CREATE_MS })
      this.topics.set(name, topicId)
      return undefined
    } catch (error) {
      if (!(error instanceof EastGuardError)) throw error
      // Otherwise it may be there or not: nobody was told.
      if (IMPOSSIBLE.has(error.code)) {
        this.violations.push(`${name} was to be made, once: ${error.message}`)
      }
      return error.code
    }
  }

  /** All of them, or those of which so many were made before, at one broker. */
  async verify(seed: string, after: number = 0): Promise<void> {
    await using client = new EastGuard({ seeds: [seed] })
    const asked = [...this.topics].slice(after)
    for (let i = 0; i < asked.length; i += LOOK_TOPICS) {
      const some = asked.slice(i, i + LOOK_TOPICS)
      const names = some.map(([name]) => name)
      const views = await client
        .admin()
        .describeTopics(names, { timeoutMs: LOOK_MS })
        .catch((error: unknown) => {
          this.violations.push(`${seed} does not show what was made: ${String(error)}`)
          return []
        })
      const ids = new Map(views.map(({ name, topicId }) => [name, topicId]))
      for (const [name, topicId] of some) {
        if (views.length > 0 && ids.get(name) !== topicId) {
          this.violations.push(`${name} was made as ${topicId}; at ${seed} it is ${ids.get(name)}`)
        }
      }
    }
  }
}

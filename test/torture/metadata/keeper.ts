// Topics that are made and never deleted: each whose creation was answered must be there ever after, at every broker, under
// the id that was told.

import { EastGuard, EastGuardError } from '../../../src/index.ts'
import { pause } from '../../support/broker-process.ts'

const CREATE_MS = 3000
const THINK_MS = 25
const LOOK_MS = 20_000
/** How many are asked for at a time. */
const LOOK_TOPICS = 200

/** What a creation under a new name never comes to: a retry knows what the first attempt did, and what is made stays. */
const IMPOSSIBLE: ReadonlySet<string> = new Set(['TOPIC_EXISTS', 'UNKNOWN_TOPIC'])

export class Keeper {
  readonly violations: string[] = []
  private readonly topics = new Map<string, string>()
  private readonly seeds: readonly string[]
  private made = 0
  private working: Promise<void> = Promise.resolve()
  private stopped = true

  constructor(seeds: readonly string[]) {
    this.seeds = seeds
  }

  /** How many creations were answered. */
  get kept(): number {
    return this.topics.size
  }

  begin(): void {
    this.stopped = false
    this.working = this.work()
  }

  async stop(): Promise<void> {
    this.stopped = true
    await this.working
  }

  private async work(): Promise<void> {
    await using client = new EastGuard({ seeds: this.seeds })
    while (!this.stopped) {
      const name = `kept-${++this.made}`
      try {
        const { topicId } = await client.admin().createTopic(name, { timeoutMs: CREATE_MS })
        this.topics.set(name, topicId)
      } catch (error) {
        if (!(error instanceof EastGuardError)) throw error
        // Otherwise it may be there or not: nobody was told.
        if (IMPOSSIBLE.has(error.code)) {
          this.violations.push(`${name} was to be made, once: ${error.message}`)
        }
      }
      await pause(THINK_MS)
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

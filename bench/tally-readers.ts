// Consumers of the SDK that read everything of some topics into a tally, from the beginning.

import type { Consumer, EastGuard } from '../src/index.ts'
import { pause } from '../test/support/time.ts'
import type { Tally } from './tally.ts'

const LOOK_MS = 20

export class TallyReaders {
  private readonly consumers: readonly Consumer[]
  private readonly running: Promise<unknown>
  private readonly tally: Tally

  /** `onRead` is told when each record should have been sent. */
  constructor(
    client: EastGuard,
    topics: readonly string[],
    tally: Tally,
    onRead: (intendedMs: number) => void = () => {},
  ) {
    this.tally = tally
    this.consumers = topics.map((topic) => client.consumer({ topic, from: 'earliest' }))
    this.running = Promise.all(this.consumers.map((one) => this.readAll(one, onRead)))
    // Looked at by `close`.
    this.running.catch(() => {})
  }

  private async readAll(consumer: Consumer, onRead: (intendedMs: number) => void): Promise<void> {
    for await (const { topic, partition, records } of consumer.batches()) {
      for (const { key, value } of records) {
        if (value === null) throw new Error('a record without a value was sent by nobody')
        const name = key === null ? String(partition) : Buffer.from(key).toString('latin1')
        onRead(this.tally.read(`${topic}/${name}`, value))
      }
    }
  }

  /** Until all that was acknowledged has been read, or nothing more is for so long. Answers how much is missing. */
  async drained(patienceMs: number): Promise<number> {
    let { reads } = this.tally
    let movedMs = performance.now()
    for (;;) {
      const { missing } = this.tally
      if (missing === 0) return 0
      if (this.tally.reads !== reads) movedMs = performance.now()
      else if (performance.now() - movedMs > patienceMs) return missing
      ;({ reads } = this.tally)
      await pause(LOOK_MS)
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.consumers.map((consumer) => consumer.close()))
    await this.running
  }
}

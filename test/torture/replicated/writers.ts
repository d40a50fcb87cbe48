// One producer for each lane, which keeps a few records in flight and sends the next when one is settled. They rest when
// told, and go on with the same producers: what an idempotent producer has numbered goes on over all rounds.

import { EastGuard, type Producer } from '../../../src/index.ts'
import { pause } from '../../support/time.ts'
import { makeValue } from '../records.ts'
import type { Gaps } from './gaps.ts'
import type { Lane } from './lane.ts'

const IN_FLIGHT = 4
const THINK_MS = 4
/** Longer than any fault: a record that is not stored by then was forgotten. */
const DELIVERY_MS = 150_000

export class Writers {
  private readonly client: EastGuard
  private readonly lanes: readonly Lane[]
  private readonly producers: readonly Producer[]
  private readonly seed: number
  private readonly gaps: Gaps
  private working: Promise<unknown> = Promise.resolve()
  private stopped = true

  constructor(seeds: readonly string[], lanes: readonly Lane[], seed: number, gaps: Gaps) {
    this.client = new EastGuard({ seeds })
    this.lanes = lanes
    this.seed = seed
    this.gaps = gaps
    this.producers = lanes.map(({ firm }) =>
      this.client.producer({
        acks: firm ? 'all' : '1',
        idempotent: firm,
        deliveryTimeoutMs: DELIVERY_MS,
      }),
    )
  }

  begin(): void {
    this.stopped = false
    const loops = this.lanes.flatMap((lane, i) =>
      Array.from({ length: IN_FLIGHT }, () => this.loop(lane, this.producers[i] as Producer)),
    )
    this.working = Promise.all(loops)
  }

  /** Resolves when all that was sent has settled. */
  async rest(): Promise<void> {
    this.stopped = true
    await this.working
  }

  async close(): Promise<void> {
    this.stopped = true
    await this.client.close()
    await this.working
  }

  private async loop(lane: Lane, producer: Producer): Promise<void> {
    const { topic, partition } = lane
    while (!this.stopped) {
      const number = lane.send()
      const value = makeValue(this.seed, lane.producer, number)
      try {
        const { offset } = await producer.send({ topic, partition, value })
        lane.acknowledge(number, offset)
        if (lane.firm) this.gaps.acknowledged(topic)
      } catch (error) {
        if (!this.stopped) lane.failed(number, error)
        return
      }
      await pause(THINK_MS)
    }
  }
}

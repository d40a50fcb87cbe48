// Producers that write without a pause to the first partition of each topic, and never give up. They are on the switch, and
// reach every host. What they were told is judged by an oracle for each topic, and how long it took them by their longest gap.

import type { EastGuard } from '../../../src/index.ts'
import { Oracle } from '../oracle.ts'
import { makeValue, readValue } from '../records.ts'

const PRODUCERS = 2
const IN_FLIGHT_EACH = 2
const PARTITION = 0
/** Longer than any fault, and its end, takes. */
const DELIVERY_MS = 120_000
const READ_MS = 30_000

export interface Gap {
  readonly fromMs: number
  readonly toMs: number
}

export class TopicLoad {
  readonly topic: string
  readonly oracle: Oracle = new Oracle(PRODUCERS)
  private readonly seed: number
  private readonly loops: Promise<void>[] = []
  private readonly acknowledgedMs: number[] = []
  private stopped = false

  constructor(topic: string, seed: number, client: EastGuard) {
    this.topic = topic
    this.seed = seed
    for (let i = 0; i < PRODUCERS; i++) {
      const producer = client.producer({ acks: 'all', deliveryTimeoutMs: DELIVERY_MS, lingerMs: 0 })
      for (let n = 0; n < IN_FLIGHT_EACH; n++) this.loops.push(this.loop(producer, i))
    }
  }

  private async loop(producer: ReturnType<EastGuard['producer']>, index: number): Promise<void> {
    const { oracle, seed, topic } = this
    while (!this.stopped) {
      const number = oracle.send(index)
      const value = makeValue(seed, index, number)
      try {
        const place = await producer.send({ topic, value, partition: PARTITION })
        if (place.offset >= 0) oracle.acknowledge(index, number, PARTITION, place.offset)
        this.acknowledgedMs.push(performance.now())
      } catch (error) {
        oracle.violations.push(`${topic} ${index}:${number} was not written: ${String(error)}`)
        this.stopped = true
      }
    }
  }

  async stop(): Promise<void> {
    this.stopped = true
    await Promise.all(this.loops)
  }

  /** Between two acknowledgements; a gap that goes on counts until `toMs`. */
  longestGap(fromMs: number, toMs: number): Gap {
    const inside = this.acknowledgedMs.filter((ms) => ms > fromMs && ms < toMs)
    let [longest, last]: [Gap, number] = [{ fromMs, toMs: fromMs }, fromMs]
    for (const ms of [...inside, toMs]) {
      if (ms - last > longest.toMs - longest.fromMs) longest = { fromMs: last, toMs: ms }
      last = ms
    }
    return longest
  }

  /** All of it, from the start, by a client that may go to any broker. */
  async verify(client: EastGuard): Promise<void> {
    const { oracle, topic, seed } = this
    const acknowledged = oracle.acknowledgedEnds()
    oracle.beginAgain()
    const partitions = [PARTITION]
    const consumer = client.consumer({
      topic,
      partitions,
      stopAtEnd: true,
      unavailableTimeoutMs: READ_MS,
    })
    for await (const { partition, offset, value } of consumer) {
      oracle.read(partition, offset, readValue(seed, value ?? new Uint8Array(0)))
    }
    oracle.missing(acknowledged)
  }
}

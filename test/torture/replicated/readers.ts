// Who reads, and from where. A reader that names a broker's host label as its own is served by the replica there.
//
//   tailing   one for each topic, at another broker each, from the first record on and through all faults
//   passes    all partitions up to their end, once from each replica, after each round

import { EastGuard } from '../../../src/index.ts'
import type { LocalBroker } from '../../support/local-cluster.ts'
import { within } from '../../support/time.ts'
import { readValue } from '../records.ts'
import type { Lane } from './lane.ts'

const CATCH_UP_MS = 60_000
const NO_BYTES = new Uint8Array(0)

export class Tailing {
  readonly violations: string[] = []
  private readonly client: EastGuard
  private readonly lanes: readonly Lane[]
  private readonly positions = new Map<Lane, number>()
  private readonly abort = new AbortController()
  private readonly done: Promise<void>

  /** `lanes`: all of one topic. */
  constructor(seeds: readonly string[], at: string, lanes: readonly Lane[], seed: number) {
    this.client = new EastGuard({ seeds, hostLabel: at })
    this.lanes = lanes
    this.done = this.read(`who tails at ${at}`, seed)
  }

  /** Up to all that was acknowledged before. */
  async caughtUp(): Promise<void> {
    const wanted = this.lanes.map((lane) => [lane, lane.certain] as const)
    const there = ([lane, end]: readonly [Lane, number]): boolean =>
      (this.positions.get(lane) ?? 0) >= end
    try {
      const failed = (): boolean => this.violations.length > 0
      await within(CATCH_UP_MS, 'caught up', () => failed() || wanted.every(there))
    } catch {
      for (const [lane, end] of wanted) {
        lane.ended('who tails', this.positions.get(lane) ?? 0, end)
      }
    }
  }

  async close(): Promise<void> {
    this.abort.abort()
    await this.done
    await this.client.close()
  }

  private async read(name: string, seed: number): Promise<void> {
    const { lanes, positions } = this
    const topic = lanes[0]?.topic ?? ''
    const { signal } = this.abort
    try {
      const unavailableTimeoutMs = Number.POSITIVE_INFINITY
      const consumer = this.client.consumer({ topic, signal, unavailableTimeoutMs })
      for await (const { partition, records } of consumer.batches()) {
        const lane = lanes.find((one) => one.partition === partition)
        if (lane !== undefined) take(name, seed, lane, positions, records)
      }
    } catch (error) {
      if (!signal.aborted) this.violations.push(`${name} of ${topic}: ${String(error)}`)
    }
  }
}

/** Reads all lanes from where the last pass at this broker ended; `again`: from the beginning. */
export class Passes {
  private readonly positions = new Map<LocalBroker, Map<Lane, number>>()

  async read(options: {
    readonly seeds: readonly string[]
    readonly broker: LocalBroker
    readonly lanes: readonly Lane[]
    readonly seed: number
    readonly again: boolean
  }): Promise<void> {
    const { seeds, broker, lanes, again } = options
    if (again) this.positions.delete(broker)
    const positions = this.positions.get(broker) ?? new Map<Lane, number>()
    this.positions.set(broker, positions)
    await using client = new EastGuard({ seeds, hostLabel: broker.name })
    const topics = new Set(lanes.map(({ topic }) => topic))
    for (const topic of topics) {
      const mine = lanes.filter((lane) => lane.topic === topic)
      await readTopic(client, `who reads at ${broker.name}`, options.seed, mine, positions)
    }
  }
}

async function readTopic(
  client: EastGuard,
  name: string,
  seed: number,
  lanes: readonly Lane[],
  positions: Map<Lane, number>,
): Promise<void> {
  const certain = lanes.map((lane) => lane.certain)
  const offsets: Record<number, number> = {}
  for (const lane of lanes) offsets[lane.partition] = positions.get(lane) ?? 0
  const topic = lanes[0]?.topic ?? ''
  const consumer = client.consumer({ topic, from: { offsets }, stopAtEnd: true })
  for await (const { partition, records } of consumer.batches()) {
    const lane = lanes.find((one) => one.partition === partition)
    if (lane !== undefined) take(name, seed, lane, positions, records)
  }
  for (const [i, lane] of lanes.entries()) {
    lane.ended(name, positions.get(lane) ?? 0, certain[i] as number)
  }
}

function take(
  name: string,
  seed: number,
  lane: Lane,
  positions: Map<Lane, number>,
  records: readonly { readonly offset: number; readonly value: Uint8Array | null }[],
): void {
  for (const { offset, value } of records) {
    const found = readValue(seed, value ?? NO_BYTES)
    const number = found?.producer === lane.producer ? found.number : undefined
    lane.read(name, offset, number, positions.get(lane) ?? 0)
    positions.set(lane, offset + 1)
  }
}

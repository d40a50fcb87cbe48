// One round: producers write without pause through a broker that is killed at a random moment, perhaps again while it
// recovers, and then started for good; a reader checks all that is new against the oracle.

import type { Prng } from '../../src/base/prng.ts'
import type { EastGuard, Producer } from '../../src/index.ts'
import { type BrokerProcess, spawnBroker } from '../support/broker-process.ts'
import { pause, within } from '../support/time.ts'
import type { Oracle } from './oracle.ts'
import { makeValue, readValue } from './records.ts'

export const TOPIC = 'torture'
export const PARTITIONS = 6

/** Small files, so that rolls, recycling, flushing and recovery of several files happen all the time. */
export const FLAGS: readonly string[] = [
  '--wal-file-bytes=1MiB',
  '--default-segment-bytes=1MiB',
  '--block-bytes=256KiB',
  '--flush-age-ms=200',
  '--log-level=info',
]

export interface Ground {
  readonly dataDir: string
  readonly ports: { readonly port: number; readonly httpPort: number }
  readonly seed: number
  readonly random: Prng
  readonly oracle: Oracle
}

export function start(ground: Ground): Promise<BrokerProcess> {
  return spawnBroker({ dataDir: ground.dataDir, flags: FLAGS }, ground.ports)
}

/** Each producer keeps several records in flight and sends the next when one is settled, until told to stop. */
export class Writers {
  private readonly loops: Promise<void>[] = []
  private readonly ground: Ground
  private stopped = false
  failure: unknown

  constructor(ground: Ground) {
    this.ground = ground
  }

  add(producer: Producer, index: number, inFlight: number): void {
    for (let i = 0; i < inFlight; i++) this.loops.push(this.loop(producer, index))
  }

  async stop(): Promise<void> {
    this.stopped = true
    await Promise.all(this.loops)
  }

  private async loop(producer: Producer, index: number): Promise<void> {
    const { seed, oracle } = this.ground
    try {
      while (!this.stopped) {
        const number = oracle.send(index)
        const { partition, offset } = await producer.send({
          topic: TOPIC,
          key: `producer-${index}`,
          value: makeValue(seed, index, number),
        })
        if (offset < 0) oracle.violations.push(`${index}:${number} was stored, nobody knows where`)
        else oracle.acknowledge(index, number, partition, offset)
      }
    } catch (error) {
      this.failure ??= error
      this.stopped = true
    }
  }
}

export interface RoundResult {
  readonly kills: number
  readonly killsInRecovery: number
  readonly acknowledged: number
  readonly read: number
}

/** Takes a running broker and leaves a running broker. */
export async function round(
  ground: Ground,
  broker: BrokerProcess,
  client: EastGuard,
  writers: Writers,
  leastAcknowledgements: number,
): Promise<RoundResult & { readonly broker: BrokerProcess }> {
  const { oracle, random } = ground
  const before = oracle.acknowledgements
  const target = before + leastAcknowledgements + random.below(leastAcknowledgements / 4)
  await within(
    120_000,
    `${target} acknowledgements`,
    () => oracle.acknowledgements >= target || writers.failure !== undefined,
  )
  await pause(random.below(50))
  await kill(broker)
  let kills = 1
  let killsInRecovery = 0
  let next = await start(ground)
  while (random.below(2) === 0) {
    // Somewhere between the first instruction and readiness; a start takes a few hundred milliseconds.
    await pause(random.below(600))
    const wasReady = await isReady(next)
    await kill(next)
    kills++
    if (!wasReady) killsInRecovery++
    next = await start(ground)
  }
  await next.ready(60_000)
  const read = await verify(ground, client)
  if (writers.failure !== undefined) throw writers.failure
  return {
    broker: next,
    kills,
    killsInRecovery,
    acknowledged: oracle.acknowledgements - before,
    read,
  }
}

async function kill(broker: BrokerProcess): Promise<void> {
  if (broker.child.exitCode !== null) {
    throw new Error(`the broker ended by itself with ${broker.child.exitCode}:\n${broker.log()}`)
  }
  broker.child.kill('SIGKILL')
  await broker.exited
}

function isReady(broker: BrokerProcess): Promise<boolean> {
  return fetch(`http://127.0.0.1:${broker.httpPort}/readyz`).then(
    (answer) => answer.ok,
    () => false,
  )
}

/** Reads each partition from where the last reading ended to its end; returns how many records that were. */
export async function verify(ground: Ground, client: EastGuard): Promise<number> {
  const { oracle, seed } = ground
  const acknowledged = oracle.acknowledgedEnds()
  const before = oracle.verified
  const offsets: Record<number, number> = {}
  for (let p = 0; p < PARTITIONS; p++) offsets[p] = oracle.position(p)
  const consumer = client.consumer({ topic: TOPIC, from: { offsets }, stopAtEnd: true })
  for await (const batch of consumer.batches()) {
    for (const record of batch.records) {
      oracle.read(
        record.partition,
        record.offset,
        readValue(seed, record.value ?? new Uint8Array(0)),
      )
    }
  }
  oracle.missing(acknowledged)
  return oracle.verified - before
}

// Producers without pause and an oracle around a real broker whose disk can be broken: what each test of this folder
// begins with. Files are small, so that rolls, flushing and recycling go on all the time.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { prng } from '../../src/base/prng.ts'
import { EastGuard } from '../../src/index.ts'
import { freePort } from '../support/broker-process.ts'
import type { FaultCommand } from '../support/fault-commands.ts'
import { type FaultyBroker, spawnFaultyBroker } from '../support/faulty-broker.ts'
import { within } from '../support/time.ts'
import { Oracle } from '../torture/oracle.ts'
import { FLAGS, type Ground, PARTITIONS, TOPIC, verify, Writers } from '../torture/round.ts'

const PRODUCERS = 8
const IN_FLIGHT_EACH = 8
/** More than any fault lasts; less than a test that fails should take to end. */
const DELIVERY_TIMEOUT_MS = 15_000

export class Rig {
  readonly ground: Ground
  readonly client: EastGuard
  readonly writers: Writers
  broker: FaultyBroker
  private readonly flags: readonly string[]
  private readonly clients: EastGuard[] = []

  constructor(ground: Ground, broker: FaultyBroker, flags: readonly string[]) {
    this.ground = ground
    this.broker = broker
    this.flags = flags
    this.writers = new Writers(ground)
    this.client = this.newClient()
  }

  newClient(): EastGuard {
    const client = new EastGuard({ seeds: [`127.0.0.1:${this.ground.ports.port}`] })
    this.clients.push(client)
    return client
  }

  addWriters(): void {
    for (let i = 0; i < PRODUCERS; i++) {
      const producer = this.newClient().producer({ deliveryTimeoutMs: DELIVERY_TIMEOUT_MS })
      this.writers.add(producer, i, IN_FLIGHT_EACH)
    }
  }

  get acknowledged(): number {
    return this.ground.oracle.acknowledgements
  }

  /** Fails when the producers do not get so many acknowledgements more in time. */
  async more(acknowledgements: number, withinMs: number): Promise<void> {
    const target = this.acknowledged + acknowledgements
    const what = `${acknowledgements} acknowledgements more`
    await within(withinMs, what, () => {
      if (this.writers.failure !== undefined) throw this.writers.failure
      return this.acknowledged >= target
    })
  }

  /** Resolves when nothing was acknowledged for `quietMs`. */
  async quiet(quietMs: number, withinMs: number): Promise<void> {
    let before = -1
    let since = performance.now()
    await within(withinMs, 'an end of acknowledgements', () => {
      const now = performance.now()
      if (before !== this.acknowledged) {
        before = this.acknowledged
        since = now
      }
      return now - since >= quietMs
    })
  }

  /** The broker has ended or is about to; another one is started in its place. */
  async start(faults: readonly FaultCommand[] = []): Promise<void> {
    await this.broker.exited
    this.broker = await startBroker(this.ground, this.flags, faults)
  }

  async again(): Promise<void> {
    await this.start()
    await this.broker.ready()
  }

  /** Everything from offset 0 against the oracle; rejects with what it found. */
  async verifyAll(): Promise<void> {
    const { oracle } = this.ground
    oracle.beginAgain()
    await verify(this.ground, this.client)
    if (oracle.violations.length > 0) {
      throw new Error(oracle.violations.slice(0, 10).join('\n'))
    }
  }

  async status(path: string): Promise<number> {
    const answer = await fetch(`http://127.0.0.1:${this.ground.ports.httpPort}${path}`)
    await answer.text()
    return answer.status
  }

  /** NaN: there is none of that name. */
  async metric(name: string): Promise<number> {
    const answer = await fetch(`http://127.0.0.1:${this.ground.ports.httpPort}/metrics`)
    return Number(new RegExp(`^${name} (\\S+)`, 'm').exec(await answer.text())?.[1])
  }

  /** The resident memory of the broker's process. */
  memoryBytes(): Promise<number> {
    return this.metric('process_resident_memory_bytes')
  }

  async end(): Promise<void> {
    // Before the broker goes: what is in flight settles at once then, and not when it has waited long enough.
    await this.writers.stop()
    await Promise.allSettled(this.clients.map((client) => client.close()))
    this.broker.child.kill('SIGKILL')
    await this.broker.exited
  }
}

function startBroker(
  ground: Ground,
  flags: readonly string[],
  faults: readonly FaultCommand[],
): Promise<FaultyBroker> {
  return spawnFaultyBroker({ dataDir: ground.dataDir, flags, faults }, ground.ports)
}

export async function startRig(t: TestContext, flags: readonly string[] = []): Promise<Rig> {
  const dir = await mkdtemp(join(tmpdir(), 'eastguard-faults-'))
  const ground: Ground = {
    dataDir: join(dir, 'data'),
    ports: { port: await freePort(), httpPort: await freePort() },
    seed: 1,
    random: prng(1),
    oracle: new Oracle(PRODUCERS),
  }
  const all = [...FLAGS, '--reserve-bytes=1MiB', '--drain-timeout-ms=200', ...flags]
  const rig = new Rig(ground, await startBroker(ground, all, []), all)
  t.after(async () => {
    await rig.end()
    await rm(dir, { recursive: true, force: true })
  })
  await rig.broker.ready()
  await rig.client.admin().createTopic(TOPIC, { policy: { partitions: PARTITIONS } })
  return rig
}

// npm run torture -- --rounds N --seed S [--scenario records|metadata|grow|replicated]
//
// `metadata` is told of in metadata/scenario.ts, `grow` in grow/scenario.ts, `replicated` in
// replicated/scenario.ts. `records`:
//
// A real broker under concurrent producers is killed with SIGKILL at random moments, in recovery too, and started
// again. After each round every acknowledged record must be there, at its offset, once and in order, and nothing may be
// readable that was never sent. Prints a line per round and a summary; exits 1 at the first violation and then keeps the
// data directory.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, Option } from 'commander'
import { prng } from '../../src/base/prng.ts'
import { wholeNumber } from '../../src/cli/commands/arguments.ts'
import { EastGuard } from '../../src/index.ts'
import { freePort } from '../support/broker-process.ts'
import { secondsSince } from '../support/time.ts'
import { tortureGrow } from './grow/scenario.ts'
import { tortureMetadata } from './metadata/scenario.ts'
import { Oracle } from './oracle.ts'
import { FAULTS, type Fault } from './replicated/faults.ts'
import { tortureReplicated } from './replicated/scenario.ts'
import { type Ground, PARTITIONS, round, start, TOPIC, verify, Writers } from './round.ts'

const PRODUCERS = 8
const IN_FLIGHT_EACH = 32
/** A full pass from offset 0, besides what is new, every so many rounds and at the end. */
const FULL_PASS_EVERY = 10

interface Options {
  readonly rounds: number
  readonly seed: number
  readonly acks: number
  readonly scenario: 'records' | 'metadata' | 'grow' | 'replicated'
  readonly fault: Fault | 'all'
  readonly compareEvery: number
  readonly restartEvery: number
  readonly brief?: true
  readonly shards?: number
}

async function torture(options: Options): Promise<number> {
  const ground: Ground = {
    dataDir: await mkdtemp(join(tmpdir(), 'eastguard-torture-')),
    ports: { port: await freePort(), httpPort: await freePort() },
    seed: options.seed,
    random: prng(options.seed),
    oracle: new Oracle(PRODUCERS),
  }
  const { oracle } = ground
  const began = performance.now()
  let broker = await start(ground)
  const client = new EastGuard({ seeds: [`127.0.0.1:${ground.ports.port}`] })
  const writers = new Writers(ground)
  const clients: EastGuard[] = []
  let [kills, killsInRecovery] = [0, 0]
  try {
    await broker.ready()
    await client.admin().createTopic(TOPIC, { policy: { partitions: PARTITIONS } })
    for (let i = 0; i < PRODUCERS; i++) {
      const own = new EastGuard({ seeds: [`127.0.0.1:${ground.ports.port}`] })
      clients.push(own)
      writers.add(own.producer(), i, IN_FLIGHT_EACH)
    }
    for (let n = 1; n <= options.rounds && oracle.violations.length === 0; n++) {
      const result = await round(ground, broker, client, writers, options.acks)
      broker = result.broker
      kills += result.kills
      killsInRecovery += result.killsInRecovery
      print(
        `round ${n}: ${result.acknowledged} acknowledged, ${result.kills} kills, ${result.read} read`,
      )
      if (n % FULL_PASS_EVERY === 0) await fullPass(ground, client)
    }
    await writers.stop()
    if (writers.failure !== undefined) throw writers.failure
    await fullPass(ground, client)
  } catch (error) {
    oracle.violations.push(`it could not go on: ${String(error)}\n${broker.log().slice(-2000)}`)
  } finally {
    await Promise.allSettled([client.close(), ...clients.map((own) => own.close())])
    broker.child.kill('SIGKILL')
    await broker.exited
  }
  print(
    `${options.rounds} rounds, seed ${options.seed}: ${kills} kills (${killsInRecovery} before the broker was ready), ` +
      `${oracle.acknowledgements} acknowledged, ${oracle.verified} read, ${oracle.violations.length} violations, ${secondsSince(began)} s`,
  )
  if (oracle.violations.length > 0) {
    for (const violation of oracle.violations.slice(0, 20)) print(`  ${violation}`)
    print(`the data directory was kept: ${ground.dataDir}`)
    return 1
  }
  await rm(ground.dataDir, { recursive: true, force: true })
  return 0
}

async function fullPass(ground: Ground, client: EastGuard): Promise<void> {
  ground.oracle.beginAgain()
  print(`  all from offset 0: ${await verify(ground, client)} read`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

const { shards, ...options } = new Command('torture')
  .option('--rounds <n>', 'how many rounds', wholeNumber(0), 3)
  .option('--seed <n>', 'decides every random choice', wholeNumber(0), 1)
  .option('--acks <n>', 'acknowledgements in a round, at least', wholeNumber(0), 2000)
  .addOption(
    new Option(
      '--scenario <name>',
      'one broker and its records, the metadata of three, three that become five and three again, or records on three',
    )
      .choices(['records', 'metadata', 'grow', 'replicated'])
      .default('records'),
  )
  .option('--shards <n>', 'in metadata: a power of two', wholeNumber(0))
  .addOption(
    new Option('--fault <name>', 'in replicated: so many rounds of this one')
      .choices([...FAULTS, 'all'])
      .default('all'),
  )
  .option(
    '--compare-every <n>',
    'in replicated: rounds after which the files of all are compared',
    wholeNumber(1),
    1,
  )
  .option(
    '--restart-every <n>',
    'in replicated: rounds after which all are ended, compared and started again',
    wholeNumber(1),
    5,
  )
  .option('--brief', 'in metadata, replicated: no round takes longer than it must')
  .parse()
  .opts<Options>()

const metadata = shards === undefined ? {} : { shards }

async function run(): Promise<number> {
  switch (options.scenario) {
    case 'records':
      return torture(options)
    case 'metadata':
      return tortureMetadata({ ...options, ...metadata, brief: options.brief === true, print })
    case 'grow':
      return tortureGrow({ ...options, print })
    case 'replicated':
      return tortureReplicated({ ...options, brief: options.brief === true, print })
  }
}

process.exitCode = await run()

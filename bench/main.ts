// npm run bench -- append|tiny|replicated|platform|failover|tail|catchup|metadata|sdk|all [--brokers N] [--seconds N] [--dir D] [--json]
//
// Each question is measured against the limit of this machine, probed in the same run (docs/internals/performance.md).

import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import { catchup } from './cases/catchup.ts'
import { failover } from './cases/failover.ts'
import { metadata } from './cases/metadata.ts'
import { platform } from './cases/platform.ts'
import { append, tiny } from './cases/produce.ts'
import { replicated } from './cases/replicated.ts'
import { sdk } from './cases/sdk.ts'
import { tail } from './cases/tail.ts'
import { print, type Result } from './report.ts'

const CASES: Readonly<
  Record<string, (dir: string, seconds: number, brokers: number) => Promise<Result[]>>
> = {
  append,
  tiny,
  replicated,
  platform,
  failover,
  tail,
  catchup,
  metadata,
  sdk,
}

interface Options {
  readonly seconds: string
  readonly dir: string
  readonly brokers: number
  readonly json?: true
}

/** On one machine. */
const BROKERS_MAX = 5

const program = new Command('bench')
  .addArgument(new Argument('<name>', 'the question').choices([...Object.keys(CASES), 'all']))
  .option('--seconds <n>', 'how long each measurement takes', '10')
  .option('--dir <path>', 'whose disk is measured', '.')
  .addOption(
    new Option(
      '--brokers <n>',
      'of how many brokers the cluster is, in tail, catchup, metadata and failover',
    )
      .default(1)
      .argParser(brokerCount),
  )
  .option('--json', 'one JSON object per result')
  .parse()

const options = program.opts<Options>()
const wanted = program.args[0] as string
const results: Result[] = []
for (const [name, run] of Object.entries(CASES)) {
  if (wanted !== 'all' && wanted !== name) continue
  results.push(...(await run(options.dir, Number(options.seconds), options.brokers)))
}
print(results, options.json === true)

function brokerCount(text: string): number {
  const count = Number(text)
  if (Number.isSafeInteger(count) && count >= 1 && count <= BROKERS_MAX) return count
  throw new InvalidArgumentError(`A whole number from 1 to ${BROKERS_MAX} is needed.`)
}

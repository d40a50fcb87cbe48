// npm run bench -- append|tiny|tail|catchup|sdk|all [--seconds N] [--dir D] [--json]
//
// Each question is measured against the limit of this machine, probed in the same run (docs/internals/performance.md).

import { Argument, Command } from 'commander'
import { catchup } from './cases/catchup.ts'
import { append, tiny } from './cases/produce.ts'
import { sdk } from './cases/sdk.ts'
import { tail } from './cases/tail.ts'
import { print, type Result } from './report.ts'

const CASES: Readonly<Record<string, (dir: string, seconds: number) => Promise<Result[]>>> = {
  append,
  tiny,
  tail,
  catchup,
  sdk,
}

interface Options {
  readonly seconds: string
  readonly dir: string
  readonly json?: true
}

const program = new Command('bench')
  .addArgument(new Argument('<name>', 'the question').choices([...Object.keys(CASES), 'all']))
  .option('--seconds <n>', 'how long each measurement takes', '10')
  .option('--dir <path>', 'whose disk is measured', '.')
  .option('--json', 'one JSON object per result')
  .parse()

const options = program.opts<Options>()
const wanted = program.args[0] as string
const results: Result[] = []
for (const [name, run] of Object.entries(CASES)) {
  if (wanted !== 'all' && wanted !== name) continue
  results.push(...(await run(options.dir, Number(options.seconds))))
}
print(results, options.json === true)

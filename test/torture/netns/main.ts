// npm run torture:apart -- [--fault <name> ...] [--rounds N] [--seed S]
//
// Cuts the hosts of a cluster apart (faults.ts) and judges what clients were told (scenario.ts). It starts itself again inside a
// sandbox (sandbox.ts), and leaves nothing behind on this machine. Ends with 1 at a violation, and with 2 where no network
// namespaces can be made.

import { rmSync } from 'node:fs'
import { mkdtemp, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command, Option } from 'commander'
import { wholeNumber } from '../../../src/cli/commands/arguments.ts'
import { FAULTS, type Fault } from './faults.ts'
import { runSandboxed, sandboxTrouble } from './sandbox.ts'
import { tortureApart } from './scenario.ts'

const INSIDE = '--inside'

interface Options {
  readonly fault?: readonly Fault[]
  readonly rounds: number
  readonly seed: number
  readonly logChars: number
}

function print(text: string): void {
  process.stdout.write(text)
}

async function inside(args: readonly string[]): Promise<number> {
  const dir = await mkdtemp(join(tmpdir(), 'eastguard-apart-'))
  // Whoever started this is gone; so are all brokers, with this process.
  process.stdin.once('close', () => {
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 })
    process.exit(1)
  })
  process.stdin.resume()
  const { fault: faults = FAULTS, ...options } = new Command('torture:apart')
    .addOption(new Option('--fault <names...>', 'these only').choices([...FAULTS]))
    .option('--rounds <n>', 'how many rounds, of all faults in turn', wholeNumber(0), 1)
    .option('--seed <n>', 'decides every random choice', wholeNumber(0), 1)
    .option('--log-chars <n>', 'of each broker’s log, told after a violation', wholeNumber(0), 6000)
    .parse([...args], { from: 'user' })
    .opts<Options>()
  const line = (text: string): void => print(`${text}\n`)
  const code = await tortureApart({ ...options, faults, parent: dir, print: line })
  // What a violation has left stays.
  await rmdir(dir).catch(() => {})
  process.exit(code)
}

async function outside(args: readonly string[]): Promise<number | string> {
  const trouble = sandboxTrouble()
  if (trouble === undefined) {
    return runSandboxed(fileURLToPath(import.meta.url), [INSIDE, ...args], print)
  }
  print(`${trouble}\n`)
  return 2
}

const [first, ...rest] = process.argv.slice(2)
if (first === INSIDE) await inside(rest)
else {
  const code = await outside(process.argv.slice(2))
  process.exitCode = typeof code === 'number' ? code : 1
}

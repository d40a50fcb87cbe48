#!/usr/bin/env node
// eastguard: the server, its configuration, and a look into its files.

import { CommanderError } from 'commander'
import { EXIT_CONFIG, EXIT_INTERNAL } from '../app/exit-codes.ts'
import { packageVersion } from '../app/version.ts'
import { EastGuardError } from '../base/errors.ts'
import { printFailure, UsageError } from './failure.ts'
import { rootCommand, throwErrors } from './grammar.ts'
import { terminalOutput } from './output.ts'
import { addConfigCommands } from './server/config-command.ts'
import { addInspectCommand } from './server/inspect-command.ts'
import { addRepairCommand } from './server/repair-command.ts'
import { addServerCommand } from './server/server-command.ts'

async function main(words: readonly string[]): Promise<number> {
  const out = terminalOutput(words.includes('--json'))
  const program = rootCommand('eastguard')
    .description('a distributed, partitioned, replicated log without a controller')
    .version(packageVersion(), '-V, --version', 'print the version')
    .option('--json', 'results as JSON, for programs')
    .helpCommand('help [command]', 'explain a command')
  addServerCommand(program, process.env)
  addConfigCommands(program, () => out, process.env)
  addInspectCommand(program, () => out)
  addRepairCommand(program, () => out, process.env)
  throwErrors(program)
  try {
    if (words.length === 0) program.outputHelp()
    else await program.parseAsync([...words], { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    printFailure(out, error)
    return exitCode(error)
  }
}

function exitCode(error: unknown): number {
  if (error instanceof CommanderError || error instanceof UsageError) return EXIT_CONFIG
  if (error instanceof EastGuardError && error.code === 'INVALID_CONFIG') return EXIT_CONFIG
  return EXIT_INTERNAL
}

process.exitCode = await main(process.argv.slice(2))

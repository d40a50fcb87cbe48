#!/usr/bin/env node
// eastguard: the server, its configuration, and a look into its files.

import { Command, CommanderError } from 'commander'
import { packageVersion } from '../app/version.ts'
import { exitCodeOf, printFailure } from './failure.ts'
import { terminalOutput } from './output.ts'
import { addConfigCommands } from './server/config-command.ts'
import { addInspectCommand } from './server/inspect-command.ts'
import { addServerCommand } from './server/server-command.ts'

async function main(): Promise<number> {
  const out = terminalOutput(process.argv.includes('--json'))
  const program = new Command('eastguard')
    .description('a distributed, partitioned, replicated log without a controller')
    .version(packageVersion())
    .option('--json', 'print for programs')
    .exitOverride()
  addServerCommand(program, process.env)
  addConfigCommands(program, () => out, process.env)
  addInspectCommand(program, () => out)
  // Subcommands take `--json` behind them too.
  for (const command of program.commands) allowJson(command)
  try {
    await program.parseAsync()
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode
    printFailure(out, error)
    return exitCodeOf(error)
  }
}

function allowJson(command: Command): void {
  command.exitOverride()
  if (command.name() !== 'server') command.option('--json', 'print for programs')
  for (const child of command.commands) allowJson(child)
}

process.exitCode = await main()

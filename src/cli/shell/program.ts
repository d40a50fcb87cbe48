// The grammar of eg-cli: every command, once, for the command line, the REPL and scripts alike. A program is built per
// command, because commander keeps the options of the last parse.

import type { Command } from 'commander'
import { addClusterCommands } from '../commands/cluster.ts'
import { addConsumeCommand } from '../commands/consume.ts'
import { addForceEndCommand } from '../commands/force-end.ts'
import { addPerfCommand } from '../commands/perf.ts'
import { addProduceCommand } from '../commands/produce.ts'
import { addPublishCommand } from '../commands/publish.ts'
import { addTopicCommands } from '../commands/topics.ts'
import type { CommandContext } from '../context.ts'
import { rootCommand, throwErrors } from '../grammar.ts'

export interface GlobalOptions {
  readonly seeds?: string
  readonly json?: true
}

export const DEFAULT_SEEDS = '127.0.0.1:2921'

/** `context` is asked for when a command runs, with the options that stand for all commands. */
export function buildProgram(
  version: string,
  context: (options: GlobalOptions) => CommandContext,
  print: (text: string) => void,
): Command {
  const program = rootCommand('eg-cli')
    .description('talk to an EastGuard cluster')
    .version(version, '-V, --version', 'print the version')
    .option(
      '--seeds <list>',
      `brokers to connect to, host:port, comma-separated (EASTGUARD_SEEDS, ${DEFAULT_SEEDS})`,
    )
    .option('--json', 'results as JSON, for programs')
    .helpCommand('help [command]', 'explain a command')
    .showSuggestionAfterError()
  const give = (): CommandContext => context(program.opts<GlobalOptions>())
  addTopicCommands(program, give)
  addClusterCommands(program, give)
  addForceEndCommand(program, give)
  addPublishCommand(program, give)
  addProduceCommand(program, give)
  addConsumeCommand(program, give)
  addPerfCommand(program, give)
  throwErrors(program, print)
  return program
}

/** Names of commands, and of the options of one, for completion. */
export function completions(program: Command, command: string | undefined): string[] {
  if (command === undefined) return [...program.commands.map((c) => c.name()), 'help', 'exit']
  if (command === 'help') return program.commands.map((c) => c.name())
  const found = program.commands.find((c) => c.name() === command)
  return [
    ...(found?.commands.map((c) => c.name()) ?? []),
    ...(found?.options.flatMap((option) => option.long ?? []) ?? []),
  ]
}

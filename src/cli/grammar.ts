// The words that both programs understand, and how they refuse others. Commander answers a command that is missing or
// unknown with its help page on standard error, and an error without a message; here it is one sentence with the
// commands that there are, for failure.ts to word like any other.

import { Command, type HelpContext } from 'commander'
import { UsageError } from './failure.ts'

class Grammar extends Command {
  override createCommand(name?: string): Command {
    return new Grammar(name)
  }

  override help(context?: HelpContext | ((page: string) => string)): never {
    if (typeof context !== 'object' || !context.error) return super.help()
    const { commands, args } = this
    const names = commands.map((command) => command.name()).join(', ')
    const unknown = args[0] === 'help' ? args[1] : args[0]
    const what =
      unknown === undefined ? `${this.name()} needs a command` : `there is no command '${unknown}'`
    throw new UsageError(`${what}: use one of ${names}`)
  }
}

/** The root of a grammar; its commands, and theirs, are of the same kind. */
export function rootCommand(name: string): Command {
  return new Grammar(name)
}

/** Commander would print its errors and end the process; failure.ts words them. `print` takes help pages. */
export function throwErrors(command: Command, print?: (text: string) => void): void {
  const writeErr = (): void => {}
  command
    .exitOverride()
    .configureOutput(print === undefined ? { writeErr } : { writeErr, writeOut: print })
  for (const child of command.commands) throwErrors(child, print)
}

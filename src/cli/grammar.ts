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
    if (typeof context !== 'object' || !context.error) return this.innermost().printHelp()
    const { commands, args } = this
    const unknown = args[0] === 'help' ? args[1] : args[0]
    const what =
      unknown === undefined ? `${this.name()} needs a command` : `there is no command '${unknown}'`
    throw new UsageError(`${what}: use one of ${namesOf(commands)}`)
  }

  private printHelp(): never {
    return super.help()
  }

  /** `help perf produce` is about the last word; Commander looks at the first one only. */
  private innermost(): Grammar {
    const [asked, name, inner] = this.parent?.args ?? []
    const { commands } = this
    if (asked !== 'help' || name !== this.name() || inner === undefined) return this
    if (commands.length === 0) return this
    const found = commands.find((command) => command.name() === inner)
    if (found instanceof Grammar) return found
    throw new UsageError(`there is no command '${inner}': use one of ${namesOf(commands)}`)
  }
}

function namesOf(commands: readonly Command[]): string {
  return commands.map((command) => command.name()).join(', ')
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

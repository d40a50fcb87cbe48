// How a failed command speaks: what happened, to what, and what to do; as JSON on standard error with --json.

import { CommanderError } from 'commander'
import { EastGuardError, messageOf } from '../base/errors.ts'
import type { Output } from './output.ts'

export const EXIT_OK = 0
const EXIT_FAILED = 1
/** The command line could not be understood. */
export const EXIT_USAGE = 2
/** Ended by the user (Ctrl-C), as shells count it. */
export const EXIT_INTERRUPTED = 130
/** The reader of our output went away, as shells count it. */
export const EXIT_PIPE_CLOSED = 141

/** A command line that cannot be understood: says what is wrong and how it should look. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError'
}

/** Throws ABORTED when the user has interrupted the command. */
export function throwIfInterrupted(signal: AbortSignal): void {
  if (signal.aborted) throw new EastGuardError('ABORTED', 'the command was interrupted')
}

function isPipeClosed(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === 'EPIPE'
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError || error instanceof CommanderError) return EXIT_USAGE
  if (error instanceof EastGuardError && error.code === 'ABORTED') return EXIT_INTERRUPTED
  if (isPipeClosed(error)) return EXIT_PIPE_CLOSED
  return EXIT_FAILED
}

/** `where` stands before the message: the line of a script. */
export function printFailure(out: Output, error: unknown, where: string = ''): void {
  if (isPipeClosed(error)) return
  const { code, message: what, hint, retriable, detail } = explain(error)
  // Whoever pressed Ctrl-C need not be told what was under way.
  const message = code === 'ABORTED' ? 'interrupted' : what
  if (code === 'ABORTED' && !out.json) {
    out.error(`${where}${message}`)
    return
  }
  if (out.json) {
    out.error(
      JSON.stringify({ error: { code, message: `${where}${message}`, hint, retriable, detail } }),
    )
    return
  }
  out.error(`${out.red(`${code}:`)} ${where}${message}`)
  if (hint !== '') out.error(`  ${hint}`)
}

interface Explained {
  readonly code: string
  readonly message: string
  readonly hint: string
  readonly retriable: boolean
  readonly detail: Readonly<Record<string, unknown>>
}

function explain(error: unknown): Explained {
  if (error instanceof EastGuardError) {
    const { code, message, hint, retriable, detail } = error
    return { code, message, hint, retriable, detail }
  }
  const usage = error instanceof UsageError || error instanceof CommanderError
  const text = messageOf(error)
  return {
    code: usage ? 'USAGE' : 'FAILED',
    message: text.replace(/^error: /, ''),
    hint: usage ? "'help' lists the commands, 'help <command>' explains one" : '',
    retriable: false,
    detail: {},
  }
}

// Commands from standard input, one per line, one after another. A failing command is told with its line number and the
// script goes on; the exit code is that of the first failure.

import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import {
  EXIT_INTERRUPTED,
  EXIT_OK,
  EXIT_PIPE_CLOSED,
  EXIT_USAGE,
  printFailure,
  UsageError,
} from '../failure.ts'
import { type Clients, runCommand, type Session } from './run.ts'
import { splitWords } from './words.ts'

export async function runScript(
  session: Session,
  clients: Clients,
  input: Readable,
  signal: AbortSignal,
): Promise<number> {
  let exitCode = EXIT_OK
  let number = 0
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    number++
    const where = `line ${number}: `
    let words: string[]
    try {
      words = splitWords(line)
    } catch (error) {
      printFailure(session.out, new UsageError((error as Error).message), where)
      exitCode ||= EXIT_USAGE
      continue
    }
    if (words.length === 0) continue
    if (words[0] === 'exit' || words[0] === 'quit') break
    const code = await runCommand(session, clients, words, { signal, stdin: undefined, where })
    exitCode ||= code
    if (code === EXIT_INTERRUPTED || code === EXIT_PIPE_CLOSED) break
  }
  return exitCode
}

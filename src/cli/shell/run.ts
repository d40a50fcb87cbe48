// Runs one command: from words to an exit code, with everything that can go wrong said on standard error.

import type { Readable } from 'node:stream'
import { CommanderError } from 'commander'
import type { Client } from '../../client/api.ts'
import { EXIT_OK, exitCodeOf, printFailure } from '../failure.ts'
import type { Output } from '../output.ts'
import { buildProgram, DEFAULT_SEEDS } from './program.ts'

/** Long enough for a broker that restarts, short enough for a person who mistyped an address. */
const CALL_TIMEOUT_MS = 5000

export interface Session {
  readonly version: string
  readonly out: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Seeds of the session; a command's own --seeds win. */
  readonly seeds: string | undefined
  readonly connect: (seeds: readonly string[]) => Client
  readonly confirm: ((question: string, signal: AbortSignal) => Promise<boolean>) | undefined
}

/** Clients by their seeds, so that a REPL or a script connects once. */
export class Clients {
  private readonly open = new Map<string, Client>()
  private readonly connect: (seeds: readonly string[]) => Client

  constructor(connect: (seeds: readonly string[]) => Client) {
    this.connect = connect
  }

  get(seeds: string): Client {
    let client = this.open.get(seeds)
    if (client === undefined) {
      client = this.connect(
        seeds
          .split(',')
          .map((seed) => seed.trim())
          .filter((seed) => seed !== ''),
      )
      this.open.set(seeds, client)
    }
    return client
  }

  async close(): Promise<void> {
    const clients = [...this.open.values()]
    this.open.clear()
    await Promise.allSettled(clients.map((client) => client.close()))
  }
}

export interface RunOptions {
  readonly signal: AbortSignal
  readonly stdin: Readable | undefined
  /** Stands before a failure's message: the line of a script. */
  readonly where?: string
}

export async function runCommand(
  session: Session,
  clients: Clients,
  words: readonly string[],
  options: RunOptions,
): Promise<number> {
  // Until the words are parsed nobody knows for sure; an error in them should still come out as asked.
  let out = words.includes('--json') ? session.out.withJson() : session.out
  const program = buildProgram(
    session.version,
    (globals) => {
      if (globals.json === true) out = session.out.withJson()
      const seeds = globals.seeds ?? session.seeds ?? DEFAULT_SEEDS
      return {
        out,
        client: clients.get(seeds),
        signal: options.signal,
        call: { signal: options.signal, timeoutMs: CALL_TIMEOUT_MS },
        stdin: options.stdin,
        confirm: session.confirm,
      }
    },
    (text) => session.out.print(text),
  )
  try {
    await program.parseAsync([...words], { from: 'user' })
    return EXIT_OK
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT_OK
    printFailure(out, error, options.where)
    return exitCodeOf(error)
  }
}

// What a command is given: a client that connects when first needed, a place to write, and the way to be interrupted.

import type { Readable } from 'node:stream'
import type { CallOptions, Client } from '../client/api.ts'
import type { Output } from './output.ts'

export interface CommandContext {
  readonly out: Output
  readonly client: Client
  /** For calls that a person waits for: interruptible, and not for long. */
  readonly call: CallOptions
  /** Fires when the user interrupts the command. */
  readonly signal: AbortSignal
  /** Standard input for `produce`; undefined where it holds the commands themselves (REPL, script). */
  readonly stdin: Readable | undefined
  /** Asks a person yes or no, and rejects with ABORTED when the signal fires; undefined where nobody can be asked. */
  readonly confirm: ((question: string, signal: AbortSignal) => Promise<boolean>) | undefined
}

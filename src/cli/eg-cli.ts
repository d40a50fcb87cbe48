#!/usr/bin/env node
// eg-cli: with arguments one command; without, a prompt on a terminal and a script on a pipe.

import { createInterface } from 'node:readline'
import { EastGuard } from '../app/connect.ts'
import { packageVersion } from '../app/version.ts'
import { EXIT_PIPE_CLOSED } from './failure.ts'
import { nearness } from './nearness.ts'
import { NotesLog } from './notes-log.ts'
import { terminalOutput } from './output.ts'
import { ask } from './shell/ask.ts'
import { runRepl } from './shell/repl.ts'
import { Clients, runCommand, type Session } from './shell/run.ts'
import { runScript } from './shell/script.ts'

interface Leading {
  readonly seeds: string | undefined
  readonly json: boolean
  readonly words: readonly string[]
}

/** Options that stand for a whole session come first: `eg-cli --seeds a:1,b:1`. */
function leadingOptions(words: readonly string[]): Leading {
  let seeds: string | undefined
  let json = false
  let at = 0
  for (; at < words.length; at++) {
    const word = words[at] as string
    if (word === '--json') json = true
    else if (word === '--seeds' && at + 1 < words.length) seeds = words[++at]
    else if (word.startsWith('--seeds=')) seeds = word.slice('--seeds='.length)
    else break
  }
  return { seeds, json, words: words.slice(at) }
}

/** On a terminal in raw mode Ctrl-C is a key, and no signal to this process. */
async function askOnce(question: string, interrupt: AbortController): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  // Ctrl-D leaves the cursor behind the question.
  const onEnd = (): boolean => process.stderr.write('\n')
  terminal.once('close', onEnd).on('SIGINT', () => interrupt.abort())
  try {
    return await ask(terminal, question, interrupt.signal)
  } finally {
    terminal.off('close', onEnd).close()
  }
}

async function main(): Promise<number> {
  const { seeds, json, words } = leadingOptions(process.argv.slice(2))
  const interactive = process.stdin.isTTY === true && process.stdout.isTTY === true
  const out = terminalOutput(json)
  const interrupt = new AbortController()
  const { signal } = interrupt
  const session: Session = {
    version: packageVersion(),
    out,
    env: process.env,
    seeds: seeds ?? process.env['EASTGUARD_SEEDS'],
    connect: (list) =>
      new EastGuard({
        seeds: list,
        clientName: 'eg-cli',
        ...nearness(process.env),
        log: new NotesLog(out),
      }),
    confirm: interactive ? (question) => askOnce(question, interrupt) : undefined,
  }
  const clients = new Clients(session.connect)
  try {
    if (words.length === 0 && interactive) return await runRepl(session, clients)
    process.once('SIGINT', () => interrupt.abort())
    if (words.length > 0) {
      return await runCommand(session, clients, words, { signal, stdin: process.stdin })
    }
    return await runScript(session, clients, process.stdin, signal)
  } finally {
    await clients.close()
  }
}

// A reader that has seen enough (`consume | head`) is no failure to speak of.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT_PIPE_CLOSED)
  throw error
})
process.exitCode = await main()
// Standard input may still be open, and would keep the process.
process.stdin.destroy()

// The prompt: history that survives, completion of commands, options and topic names, Ctrl-C to stop a command.

import { readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { EXIT_OK, printFailure, UsageError } from '../failure.ts'
import { ask } from './ask.ts'
import { buildProgram, completions, DEFAULT_SEEDS } from './program.ts'
import { type Clients, runCommand, type Session } from './run.ts'
import { quoteWord, splitWords } from './words.ts'

const HISTORY_LINES = 1000
const PROMPT = 'eastguard> '
const COMPLETION_TIMEOUT_MS = 1000

/** Resolves with the exit code when the user leaves: that of the first command that failed. */
export async function runRepl(session: Session, clients: Clients): Promise<number> {
  const historyPath = session.env['EASTGUARD_HISTORY'] ?? join(homedir(), '.eastguard_history')
  const repl = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: PROMPT,
    history: readHistory(historyPath),
    historySize: HISTORY_LINES,
    removeHistoryDuplicates: true,
    completer: (line: string, done: (error: null, result: [string[], string]) => void) => {
      complete(session, clients, line).then(
        (result) => done(null, result),
        () => done(null, [[], line]),
      )
    },
  })
  let history: readonly string[] = []
  repl.on('history', (lines: string[]) => {
    history = [...lines]
  })
  process.stdout.write("EastGuard. 'help' lists the commands, 'exit' leaves.\n")
  const exitCode = await promptLoop(session, clients, repl)
  repl.close()
  if (history.length > 0) writeHistory(historyPath, history)
  return exitCode
}

async function promptLoop(session: Session, clients: Clients, repl: Interface): Promise<number> {
  let exitCode = EXIT_OK
  let running: AbortController | undefined
  repl.on('SIGINT', () => {
    if (running !== undefined) running.abort()
    else {
      process.stdout.write("\n(Ctrl-D or 'exit' leaves)\n")
      repl.prompt()
    }
  })
  const asking: Session = {
    ...session,
    confirm: (question, signal) => ask(repl, question, signal),
  }
  repl.prompt()
  for await (const line of repl) {
    const words = wordsOf(session, line)
    if (words?.[0] === 'exit' || words?.[0] === 'quit') break
    if (words !== undefined && words.length > 0) {
      running = new AbortController()
      const { signal } = running
      const code = await runCommand(asking, clients, words, { signal, stdin: undefined })
      exitCode ||= code
      running = undefined
    }
    repl.prompt()
  }
  return exitCode
}

function wordsOf(session: Session, line: string): string[] | undefined {
  try {
    return splitWords(line)
  } catch (error) {
    printFailure(session.out, new UsageError((error as Error).message))
    return undefined
  }
}

async function complete(
  session: Session,
  clients: Clients,
  line: string,
): Promise<[string[], string]> {
  const words = line.trimStart().split(/\s+/)
  const last = words.at(-1) ?? ''
  const command = words.length > 1 ? words[0] : undefined
  const program = buildProgram(
    session.version,
    () => {
      throw new UsageError('nothing runs here')
    },
    () => {},
  )
  const candidates = completions(program, command)
  const takesTopic = command !== undefined && command !== 'create-topic' && command !== 'help'
  if (takesTopic && !last.startsWith('-')) {
    const client = clients.get(session.seeds ?? DEFAULT_SEEDS)
    const topics = await client.admin().listTopics({ timeoutMs: COMPLETION_TIMEOUT_MS })
    candidates.push(...topics.map(quoteWord))
  }
  return [candidates.filter((candidate) => candidate.startsWith(last)), last]
}

/** Newest first, as readline has it; the file has the oldest first. */
function readHistory(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean).toReversed()
  } catch {
    return []
  }
}

function writeHistory(path: string, history: readonly string[]): void {
  try {
    writeFileSync(path, `${history.toReversed().join('\n')}\n`, { mode: 0o600 })
  } catch {
    // A history that cannot be kept is no reason to disturb the user.
  }
}

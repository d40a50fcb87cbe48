// A real broker in a process of its own, as a user would start it: `eastguard server` with flags, on free ports
// and a data directory that the caller owns. Tests, the torture command and the benchmarks share it.

import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import { pause } from './time.ts'

const PROGRAM = fileURLToPath(new URL('../../src/cli/eastguard.js', import.meta.url))

/** Where a broker runs. */
export interface Place {
  /** Its address, which its listeners bind. */
  readonly host: string
  /** Words before those of a command: it runs there then. */
  readonly enter: readonly string[]
}

export const HERE: Place = { host: '127.0.0.1', enter: [] }

export interface BrokerOptions {
  readonly dataDir: string
  /** Default: here, on the loopback. */
  readonly place?: Place
  /** Another program that takes the words of `eastguard server` after its own, and messages of its parent. */
  readonly program?: { readonly path: string; readonly words: readonly string[] }
  /** Further flags of `eastguard server`. */
  readonly flags?: readonly string[]
  /** Flags of Node itself, such as --cpu-prof. */
  readonly nodeFlags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export interface BrokerProcess {
  readonly port: number
  readonly httpPort: number
  readonly dataDir: string
  readonly child: ChildProcess
  /** What the broker has written to standard error, its log. */
  log(): string
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>
  /** Resolves when /readyz says yes; rejects when the process ends first or after `withinMs`. */
  ready(withinMs?: number): Promise<void>
}

// Below the ports that systems give to who connects somewhere: one of those would be taken while its broker is away for a
// moment. So that no other process of these tests takes it either, ports come in blocks, and a process has a block for as
// long as it listens on the block's first port.
const FIRST_PORT = 16_384
const BLOCKS = 256
const PORTS_EACH = 64
let block: { readonly first: number; given: number } | undefined

/** Never one that was given already, here or to another process that lives. */
export async function freePort(): Promise<number> {
  for (;;) {
    if (block === undefined || block.given === PORTS_EACH) block = await takeBlock()
    const port = block.first + block.given++
    const probe = await listen(port)
    if (probe === undefined) continue
    await new Promise((resolve) => probe.close(resolve))
    return port
  }
}

/** The first of its ports stays taken until the process ends. */
async function takeBlock(): Promise<{ readonly first: number; given: number }> {
  for (let tried = 0; tried < BLOCKS; tried++) {
    const first = FIRST_PORT + ((process.pid + tried) % BLOCKS) * PORTS_EACH
    const guard = await listen(first)
    if (guard === undefined) continue
    guard.unref()
    return { first, given: 1 }
  }
  const last = FIRST_PORT + BLOCKS * PORTS_EACH - 1
  throw new Error(`no block of the ports ${FIRST_PORT} to ${last} is free`)
}

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer()
  const free = new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
  })
  return (await free) ? server : undefined
}

/** Starts the process; `ports` keeps a broker where its clients look for it over a restart. */
export async function spawnBroker(
  options: BrokerOptions,
  ports?: { readonly port: number; readonly httpPort: number },
): Promise<BrokerProcess> {
  const port = ports?.port ?? (await freePort())
  const httpPort = ports?.httpPort ?? (await freePort())
  const { host, enter } = options.place ?? HERE
  const [command, ...words] = [...enter, process.execPath]
  const child = spawn(
    command,
    [
      ...words,
      ...(options.nodeFlags ?? []),
      ...(options.program === undefined
        ? [PROGRAM]
        : [options.program.path, ...options.program.words]),
      'server',
      '--data-dir',
      options.dataDir,
      '--host',
      host,
      '--client-port',
      String(port),
      '--http-port',
      String(httpPort),
      '--cluster-port',
      '0',
      '--data-port',
      '0',
      ...(options.flags ?? []),
    ],
    {
      stdio: [
        'ignore',
        'ignore',
        'pipe',
        ...(options.program === undefined ? [] : ['ipc' as const]),
      ],
      env: { ...process.env, ...options.env },
    },
  )
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-64 * 1024)
  })
  const exited = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  const ready = async (withinMs = 15_000): Promise<void> => {
    const deadline = performance.now() + withinMs
    while (performance.now() < deadline) {
      if (child.exitCode !== null || child.signalCode !== null) {
        throw new Error(`the broker ended with ${child.exitCode ?? child.signalCode}:\n${text}`)
      }
      const yes = await fetch(`http://${host}:${httpPort}/readyz`).then(
        (answer) => answer.ok,
        () => false,
      )
      if (yes) return
      await pause(20)
    }
    throw new Error(`the broker was not ready within ${withinMs} ms:\n${text}`)
  }
  return { port, httpPort, dataDir: options.dataDir, child, log: () => text, exited, ready }
}

// A real broker in a process of its own, on free ports and a temporary directory, as a user would start it.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'

export interface BenchBroker {
  readonly port: number
  readonly dataDir: string
  readonly process: ChildProcess
  /** Ends the process and removes its data. */
  stop(): Promise<void>
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** `parent` is the directory whose disk is measured; `flags` are the server's own. */
export async function startBroker(
  parent: string,
  flags: readonly string[] = [],
): Promise<BenchBroker> {
  const dataDir = await mkdtemp(join(parent, 'eastguard-bench-'))
  const [port, httpPort] = [await freePort(), await freePort()]
  const program = new URL('../src/cli/eastguard.js', import.meta.url).pathname
  const args = [
    'server',
    '--data-dir',
    dataDir,
    '--client-port',
    String(port),
    '--http-port',
    String(httpPort),
    '--log-level',
    'warn',
    ...flags,
  ]
  const child = spawn(process.execPath, [...profilerFlags(), program, ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await exited
    await rm(dataDir, { recursive: true, force: true })
  }
  const deadline = performance.now() + 15_000
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the broker ended with ${child.exitCode}`)
    const ready = await fetch(`http://127.0.0.1:${httpPort}/readyz`).then(
      (answer) => answer.ok,
      () => false,
    )
    if (ready) return { port, dataDir, process: child, stop }
    if (performance.now() > deadline) {
      await stop()
      throw new Error('the broker was not ready within 15 s')
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** With EASTGUARD_BENCH_PROFILE set the broker leaves a .cpuprofile in the current directory. */
function profilerFlags(): string[] {
  return process.env['EASTGUARD_BENCH_PROFILE'] === undefined ? [] : ['--cpu-prof']
}

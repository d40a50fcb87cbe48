// What lives in a measured process: heap and buffers after a collection. Unlike resident memory it does not depend on what the
// engine has kept for later. The process is started with the flags given here, and asked by a signal.

import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { liveMemoryFile } from './live-memory-file.ts'

const LOOK_MS = 20
const ANSWER_MS = 10_000

export const LIVE_MEMORY_FLAGS: readonly string[] = [
  '--expose-gc',
  '--import',
  new URL('./live-memory-preload.js', import.meta.url).href,
]

export async function liveBytes(pid: number | undefined): Promise<number> {
  if (pid === undefined) throw new Error('the process has not been started')
  const file = liveMemoryFile(pid)
  process.kill(pid, 'SIGUSR2')
  const deadline = performance.now() + ANSWER_MS
  while (!existsSync(file)) {
    if (performance.now() > deadline) throw new Error(`process ${pid} did not say what lives in it`)
    await pause(LOOK_MS)
  }
  const bytes = Number(await readFile(file, 'utf8'))
  await rm(file)
  return bytes
}

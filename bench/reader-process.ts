// The lean consumer in a process of its own, so that what it costs does not show in the latencies of others.
// Run as a program it reads what its one argument says (JSON) and reports bytes and milliseconds to its parent.

import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { RawReader, type ReaderOptions } from './reader.ts'

export interface Reading {
  readonly bytes: number
  readonly ms: number
}

export function readInProcess(options: ReaderOptions): Promise<Reading> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(options)])
    child.once('message', (reading) => resolve(reading as Reading))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the reader ended with ${code}`)))
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const began = performance.now()
  const reader = new RawReader(JSON.parse(process.argv[2] as string) as ReaderOptions)
  await reader.done
  process.send?.({ bytes: reader.bytes, ms: performance.now() - began })
  process.disconnect()
}

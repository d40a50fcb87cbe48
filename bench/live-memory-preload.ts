// Loaded into a measured process before its program: see live-memory.ts.

import { renameSync, writeFileSync } from 'node:fs'
import { liveMemoryFile } from './live-memory-file.ts'

process.on('SIGUSR2', () => {
  // Twice: what the first pass finalizes goes with the second.
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  const file = liveMemoryFile(process.pid)
  // Whole or not at all, for whoever waits for it.
  writeFileSync(`${file}.new`, String(heapUsed + arrayBuffers))
  renameSync(`${file}.new`, file)
})

// What this disk can do: sequential write + fdatasync of one size, on a preallocated file, one after another; and
// sequential reads of a file that the page cache does not hold.

import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'

const PREALLOCATED = 256 * 1024 * 1024

/** Synced writes of `size` bytes per second. */
export async function probeSyncedWrites(
  dir: string,
  size: number,
  seconds: number,
): Promise<number> {
  const path = join(dir, 'probe.bin')
  const fd = openSync(path, 'w')
  try {
    const zeros = Buffer.alloc(1024 * 1024)
    for (let at = 0; at < PREALLOCATED; at += zeros.length)
      writeSync(fd, zeros, 0, zeros.length, at)
    fdatasyncSync(fd)
    const block = Buffer.alloc(size, 0x5a)
    const began = performance.now()
    let writes = 0
    let at = 0
    while (performance.now() - began < seconds * 1000) {
      if (at + size > PREALLOCATED) at = 0
      writeSync(fd, block, 0, size, at)
      fdatasyncSync(fd)
      at += size
      writes++
    }
    return writes / ((performance.now() - began) / 1000)
  } finally {
    closeSync(fd)
    await rm(path, { force: true })
  }
}

/** Bytes per second of one sequential read of an existing file in 1 MiB requests. */
export async function probeSequentialRead(path: string): Promise<number> {
  const file = await open(path, 'r')
  try {
    const buffer = Buffer.alloc(1024 * 1024)
    const began = performance.now()
    let total = 0
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, total)
      if (bytesRead === 0) break
      total += bytesRead
    }
    return total / ((performance.now() - began) / 1000)
  } finally {
    await file.close()
  }
}

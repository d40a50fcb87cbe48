// The disk port over the file system, fenced in to one directory.
//
//   root/                 given once; made when missing
//     a/b/c.log           what callers name "a/b/c.log"
//
// Callers name files relative to the root, so that a data directory can be moved and no code can reach outside it:
// absolute paths, `..`, empty parts and NUL are refused. Promises resolve from libuv's pool; nothing here blocks the
// event loop.

import { constants } from 'node:fs'
import fs from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { assert } from '../../base/assert.ts'
import type { DirEntry, Disk, DiskFile, DiskSpace, OpenOptions } from '../../ports/disk.ts'
import { diskError, errorCode, syncError } from './faults.ts'
import { takeLock } from './lock.ts'
import { openFile } from './open-file.ts'

const { O_CREAT, O_DSYNC, O_EXCL, O_RDONLY, O_RDWR } = constants

const FLAGS: Readonly<Record<OpenOptions['mode'], number>> = {
  read: O_RDONLY,
  write: O_RDWR,
  create: O_RDWR | O_CREAT,
  'create-new': O_RDWR | O_CREAT | O_EXCL,
}

export function fileDisk(root: string): Disk {
  const base = resolve(root)

  /** '.' is the root itself. */
  const inside = (path: string): string => {
    if (path === '.') return base
    for (const part of path.split('/')) {
      assert(
        part !== '' && part !== '.' && part !== '..' && !part.includes('\0'),
        `"${path}" is not a path inside the data directory`,
      )
    }
    return `${base}/${path}`
  }

  return {
    async open(path: string, options: OpenOptions): Promise<DiskFile> {
      const flags = FLAGS[options.mode] | (options.durable === true ? O_DSYNC : 0)
      return openFile(inside(path), flags, path)
    },

    async makeDir(path: string): Promise<void> {
      await attempt('make the directory', path, fs.mkdir(inside(path), { recursive: true }))
    },

    async list(path: string): Promise<readonly DirEntry[]> {
      const entries = await attempt('list', path, fs.readdir(inside(path), { withFileTypes: true }))
      return entries.map((entry) => ({
        name: entry.name,
        kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : 'other',
      }))
    },

    async rename(from: string, to: string): Promise<void> {
      await attempt(`rename to ${to}`, from, fs.rename(inside(from), inside(to)))
    },

    async remove(path: string): Promise<void> {
      assert(path !== '.', 'the data directory itself is never removed')
      await attempt('remove', path, remove(inside(path)))
    },

    async syncDir(path: string): Promise<void> {
      const handle = await attempt('open the directory', path, fs.open(inside(path), O_RDONLY))
      try {
        await attempt('sync the directory', path, handle.sync(), syncError)
      } finally {
        // Nothing depends on it.
        handle.close().catch(() => {})
      }
    },

    async space(): Promise<DiskSpace> {
      const stats = await attempt('measure', '.', fs.statfs(base))
      return { totalBytes: stats.blocks * stats.bsize, freeBytes: stats.bavail * stats.bsize }
    },

    async lock(path: string) {
      await attempt('make the directory', '.', makeDirs(base))
      return takeLock(inside(path), path)
    },
  }
}

/** Most are files, for which one call does; Node's recursive removal looks at each first. */
async function remove(at: string): Promise<void> {
  try {
    await fs.unlink(at)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') await fs.rm(at, { recursive: true, force: true })
  }
}

/** Node's recursive mkdir never ends where a parent is there and still refuses children as missing, as in /proc. */
async function makeDirs(dir: string): Promise<void> {
  if (await isThere(dir)) return
  const parent = dirname(dir)
  if (parent !== dir) await makeDirs(parent)
  try {
    await fs.mkdir(dir)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

async function isThere(dir: string): Promise<boolean> {
  try {
    await fs.stat(dir)
    return true
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    return false
  }
}

async function attempt<T>(
  doing: string,
  path: string,
  work: Promise<T>,
  inOurWords: typeof diskError = diskError,
): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw errorCode(error) === undefined ? error : inOurWords(doing, path, error)
  }
}

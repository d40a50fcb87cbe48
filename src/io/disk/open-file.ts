// One open file. Calls go straight to Node's callback interface, whose system calls run on the thread pool; each
// costs one promise and nothing else.
//
// Neither read nor write trusts the system to do all of what it was asked: a short read is continued until the end
// of the file, a short write until everything is out.

import fs from 'node:fs'
import { assert } from '../../base/assert.ts'
import type { DiskFile } from '../../ports/disk.ts'
import { gather } from '../gather.ts'
import { diskError, syncError } from './faults.ts'

/** Zeros for `allocate`, written many times over by one call. */
const ZEROS = new Uint8Array(1024 * 1024)
const ZERO_BUFFERS_PER_CALL = 16

type Resolve<T> = (value: T) => void
type Reject = (reason: Error) => void

/** A bare descriptor: FileHandle would add an object with a finaliser and a queue to every file. */
export function openFile(at: string, flags: number, path: string): Promise<DiskFile> {
  return new Promise((resolve, reject) => {
    fs.open(at, flags, 0o666, (error, fd) => {
      if (error) reject(diskError('open', path, error))
      else resolve(new OpenFile(path, fd))
    })
  })
}

class OpenFile implements DiskFile {
  readonly path: string
  private readonly fd: number
  private closed = false

  constructor(path: string, fd: number) {
    this.path = path
    this.fd = fd
  }

  read(into: Uint8Array, position: number): Promise<number> {
    this.check()
    return new Promise((resolve, reject) => this.readOn(into, 0, position, resolve, reject))
  }

  private readOn(
    into: Uint8Array,
    done: number,
    position: number,
    resolve: Resolve<number>,
    reject: Reject,
  ): void {
    if (done === into.length) return resolve(done)
    fs.read(this.fd, into, done, into.length - done, position + done, (error, count) => {
      if (error) reject(diskError('read', this.path, error))
      else if (count === 0) resolve(done)
      else this.readOn(into, done + count, position, resolve, reject)
    })
  }

  write(buffers: readonly Uint8Array[], position: number): Promise<void> {
    this.check()
    return new Promise((resolve, reject) =>
      this.writeOn(gather(buffers), position, resolve, reject),
    )
  }

  private writeOn(
    buffers: readonly Uint8Array[],
    position: number,
    resolve: Resolve<void>,
    reject: Reject,
  ): void {
    let length = 0
    for (const buffer of buffers) length += buffer.length
    if (length === 0) return resolve()
    // Node declares the list mutable but only reads it.
    fs.writev(this.fd, buffers as Uint8Array[], position, (error, count) => {
      if (error) reject(diskError('write', this.path, error))
      else if (count === length) resolve()
      else if (count === 0) reject(diskError('write', this.path, new Error('nothing was written')))
      else this.writeOn(dropBytes(buffers, count), position + count, resolve, reject)
    })
  }

  sync(): Promise<void> {
    this.check()
    return new Promise((resolve, reject) => {
      fs.fdatasync(this.fd, (error) => {
        if (error) reject(syncError('sync', this.path, error))
        else resolve()
      })
    })
  }

  size(): Promise<number> {
    this.check()
    return new Promise((resolve, reject) => {
      fs.fstat(this.fd, (error, stats) => {
        if (error) reject(diskError('look at', this.path, error))
        else resolve(stats.size)
      })
    })
  }

  truncate(length: number): Promise<void> {
    this.check()
    return new Promise((resolve, reject) => {
      fs.ftruncate(this.fd, length, (error) => {
        if (error) reject(diskError('truncate', this.path, error))
        else resolve()
      })
    })
  }

  async allocate(length: number): Promise<void> {
    const before = await this.size()
    try {
      for (let at = before; at < length; ) {
        const buffers: Uint8Array[] = []
        let left = length - at
        for (; left > 0 && buffers.length < ZERO_BUFFERS_PER_CALL; left -= ZEROS.length) {
          buffers.push(left < ZEROS.length ? ZEROS.subarray(0, left) : ZEROS)
        }
        await this.write(buffers, at)
        at = length - Math.max(0, left)
      }
    } catch (error) {
      // What was taken in vain goes back: it may be the last free space there is.
      await this.truncate(before).catch(() => undefined)
      throw error
    }
  }

  close(): Promise<void> {
    if (this.closed) return Promise.resolve()
    this.closed = true
    return new Promise((resolve, reject) => {
      fs.close(this.fd, (error) => {
        if (error) reject(diskError('close', this.path, error))
        else resolve()
      })
    })
  }

  /** The number of a closed file may belong to another file by now. */
  private check(): void {
    assert(!this.closed, `${this.path} is used after it was closed`)
  }
}

function dropBytes(buffers: readonly Uint8Array[], count: number): readonly Uint8Array[] {
  const left: Uint8Array[] = []
  let drop = count
  for (const buffer of buffers) {
    if (drop >= buffer.length) drop -= buffer.length
    else {
      left.push(drop === 0 ? buffer : buffer.subarray(drop))
      drop = 0
    }
  }
  return left
}

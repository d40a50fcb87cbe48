// A segment's file as a handle that opens itself when it is used and is closed again when too many are open: a broker
// with 10,000 idle segments holds few file descriptors. A file with unsynced writes stays open, so that the sync that
// follows sees every error of the writes before it; not so a derived one, which nobody syncs and anybody can make again.

import { assert } from '../../base/assert.ts'
import { getU32 } from '../../base/bytes.ts'
import type { Disk, DiskFile } from '../../ports/disk.ts'
import { BLOCK_FIXED_BYTES, type BlockHeader, blockHeaderBytes, getBlockHeader } from './format.ts'

const OPEN_FILES_MAX = 1024
/** Enough for the header of a block with 100-odd pieces; longer ones take a second read. */
const HEADER_GUESS_BYTES = 8192

/** The files that are open, least recently used first. */
export class OpenFiles {
  readonly disk: Disk
  private readonly open: Set<LogFile> = new Set()
  private readonly limit: number

  constructor(disk: Disk, limit: number = OPEN_FILES_MAX) {
    this.disk = disk
    this.limit = limit
  }

  used(file: LogFile): void {
    this.open.delete(file)
    this.open.add(file)
    if (this.open.size <= this.limit) return
    for (const other of this.open) {
      if (other !== file && other.closeIfIdle()) {
        this.open.delete(other)
        if (this.open.size <= this.limit) return
      }
    }
  }

  closed(file: LogFile): void {
    this.open.delete(file)
  }
}

/** `derived`: written, and good for as long as its own checksums say so. */
type FileMode = 'read' | 'write' | 'derived'

export class LogFile {
  readonly path: string
  private readonly files: OpenFiles
  private readonly mode: FileMode
  private handle: Promise<DiskFile> | undefined
  private users = 0
  private unsynced = false
  private idle: (() => void) | undefined

  constructor(files: OpenFiles, path: string, mode: FileMode = 'write') {
    this.files = files
    this.path = path
    this.mode = mode
  }

  private get modeToRead(): 'read' | 'write' {
    return this.mode === 'read' ? 'read' : 'write'
  }

  /** Runs `run` with the open file; it is not closed meanwhile. */
  private async with<T>(
    mode: 'read' | 'write' | 'create',
    run: (file: DiskFile) => Promise<T>,
  ): Promise<T> {
    this.users++
    try {
      this.handle ??= this.files.disk.open(this.path, { mode })
      let file: DiskFile
      try {
        file = await this.handle
      } catch (error) {
        this.handle = undefined
        throw error
      }
      this.files.used(this)
      return await run(file)
    } finally {
      this.users--
      if (this.users === 0) this.idle?.()
    }
  }

  write(buffers: readonly Uint8Array[], position: number): Promise<void> {
    this.unsynced = this.mode !== 'derived'
    return this.with('create', (file) => file.write(buffers, position))
  }

  async sync(): Promise<void> {
    await this.with('write', (file) => file.sync())
    this.unsynced = false
  }

  async truncate(length: number): Promise<void> {
    this.unsynced = this.mode !== 'derived'
    await this.with('write', (file) => file.truncate(length))
  }

  size(): Promise<number> {
    return this.with(this.modeToRead, (file) => file.size())
  }

  /** Bytes [position, position + length), fewer at the end of the file. In memory of their own. */
  async read(position: number, length: number): Promise<Uint8Array> {
    const into = Buffer.allocUnsafeSlow(length)
    let got = 0
    await this.with(this.modeToRead, async (file) => {
      while (got < length) {
        const n = await file.read(into.subarray(got), position + got)
        if (n === 0) break
        got += n
      }
    })
    return into.subarray(0, got)
  }

  /** The block header at `position`; undefined when there is no valid one there. */
  async readBlockHeader(position: number, seed: number): Promise<BlockHeader | undefined> {
    let bytes = await this.read(position, HEADER_GUESS_BYTES)
    if (bytes.length < BLOCK_FIXED_BYTES) return undefined
    const length = blockHeaderBytes(bytes, 0)
    if (length === undefined) return undefined
    if (length > bytes.length) bytes = await this.read(position, getU32(bytes, 8))
    const block = getBlockHeader(bytes, 0, seed)
    return block?.position === position ? block : undefined
  }

  closeIfIdle(): boolean {
    if (this.users > 0 || this.unsynced) return false
    this.release()
    return true
  }

  /** Waits for those who use it, then closes it, synced or not. */
  async close(): Promise<void> {
    assert(this.idle === undefined, 'a file is closed once')
    if (this.users > 0) {
      await new Promise<void>((resolve) => {
        this.idle = resolve
      })
    }
    this.files.closed(this)
    const { handle } = this
    this.handle = undefined
    await handle?.then((file) => file.close()).catch(() => undefined)
  }

  private release(): void {
    const { handle } = this
    this.handle = undefined
    // Nothing is lost when closing fails: all was synced.
    void handle?.then((file) => file.close()).catch(() => undefined)
  }
}

// The files of one log: one that takes groups, those before it that still hold something, and spares ahead.
//
//     live, oldest first                current            spares
//   [ 7 ] [ 8 ] [ 9 ]                   [ 10 ]             [ 11 ]
//     |  released                          ^ rotate: the header makes it live
//     +---- rename to 12, a spare again ---------------------------^
//
// Files are taken in advance, whole, because writing over allocated blocks spares the file system its journal, and
// because space must be there before an entry is numbered. A released file is renamed to the next free sequence and
// keeps its old bytes; the salt of its next header makes them mean nothing. Renames happen one at a time, each followed
// by a sync of the directory, so that the sequences on disk never have a gap that is not damage.

import { assert } from '../../base/assert.ts'
import { getU32 } from '../../base/bytes.ts'
import type { Clock } from '../../ports/clock.ts'
import { type Disk, type DiskFile, foundNoRoom } from '../../ports/disk.ts'
import type { Log } from '../../ports/log.ts'
import type { Random } from '../../ports/random.ts'
import {
  fileName,
  HEADER_PAGE_BYTES,
  LOG_FORMAT_VERSION,
  RECORDS_AT,
  writeHeader,
} from './header.ts'
import { GROUP_BYTES } from './record.ts'
import type { LogIdentity } from './types.ts'

/** The end of every file that no group takes, so that a mark always finds room. */
const TAIL_BYTES = HEADER_PAGE_BYTES
const SPARES_AHEAD = 1
/** More released files than this are deleted instead of kept. */
const SPARES_MAX = 8
const RETRY_MS = 1000
/** Space is taken, and synced, so much at a time. */
const SPACE_STEP_BYTES = 1024 * 1024
export const TEMPORARY_NAME = 'new.tmp'

/** What a log needs of the world, and where it lies. */
export interface LogOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly dir: string
  readonly fileBytes: number
  readonly identity: LogIdentity
  /** There may be space where there was none: ask again. */
  onSpace(): void
  /** Another file has become the current one. */
  onRotated(): void
  /** A write or sync failed: nothing more is reported, the process must stop. Called once. */
  onFailed(error: Error): void
}

export interface LogFilesOptions extends LogOptions {
  readonly generation: number
}

/** A file on disk that is not open: its name's sequence and its length. */
export interface IdleFile {
  readonly sequence: number
  readonly bytes: number
  /** The length is durable for certain: not so of what an earlier process left. */
  readonly sure?: true
}

interface ClosedFile extends IdleFile {
  /** The first LSN behind it. */
  readonly endLsn: number
}

interface OpenFile extends IdleFile {
  /** A write is durable when it returns. */
  readonly durable: DiskFile
  readonly salt: number
}

export class LogFiles {
  private readonly options: LogFilesOptions
  private open: OpenFile | undefined
  private readonly closed: ClosedFile[] = []
  private readonly released: IdleFile[]
  /** Files of earlier generations: all that recovery has, until this generation has begun. */
  private held: readonly IdleFile[]
  private readonly spares: IdleFile[]
  private nextSequence: number
  private tending: Promise<void> | undefined
  private noSpace = false
  private stopped = false
  /** Where the next group goes in the current file. */
  position = 0

  /** `used` are files of earlier generations, which become spares once the first file of this one is begun. */
  constructor(options: LogFilesOptions, used: readonly IdleFile[], spares: readonly IdleFile[]) {
    this.options = options
    this.held = used
    // A log that went on in a spare below a used file would leave a gap above itself when that gets its new name, and a
    // gap is a file that is missing. (A header that a power cut took back makes such a spare.)
    const usedUpTo = Math.max(0, ...used.map((file) => file.sequence))
    this.spares = spares
      .filter((file) => file.sequence > usedUpTo)
      .sort((a, b) => a.sequence - b.sequence)
    this.released = spares.filter((file) => file.sequence < usedUpTo)
    const all = [...used, ...spares].map((file) => file.sequence)
    this.nextSequence = Math.max(0, ...all) + 1
  }

  get durable(): DiskFile {
    return this.current.durable
  }
  get salt(): number {
    return this.current.salt
  }
  /** Bytes that groups may still take in the current file. */
  get remaining(): number {
    return this.open === undefined ? 0 : usable(this.open.bytes) - this.position
  }
  /** How many marks fit behind the last group. */
  get marksLeft(): number {
    return Math.floor((this.current.bytes - this.position) / GROUP_BYTES)
  }
  get spareBytes(): number {
    let bytes = 0
    for (const spare of this.spares) bytes += usable(spare.bytes)
    return bytes
  }
  get inUse(): number {
    return this.closed.length + 1
  }
  /** The first LSN behind the oldest file in use, if that is not the current one. */
  get oldestEndLsn(): number | undefined {
    return this.closed[0]?.endLsn
  }
  /** True when there is no spare and the disk gave no space for one. */
  get blocked(): boolean {
    return this.noSpace
  }

  private get current(): OpenFile {
    assert(this.open !== undefined, 'a log is used after its first file was begun')
    return this.open
  }

  /**
   * Makes a spare the current file, its header on disk. False when there is no space: then nothing has changed,
   * and `onSpace` says when to try again.
   */
  async rotate(firstLsn: number, floorLsn: number, groupBytes: number): Promise<boolean> {
    if (this.spares.length === 0) await this.tend()
    const spare = this.spares.shift()
    if (spare === undefined) return false
    const { disk, identity, generation, random } = this.options
    const path = this.path(spare.sequence)
    const plain = await disk.open(path, { mode: 'write' })
    const bytes = await this.settleLength(plain, spare, groupBytes)
    await plain.close()
    if (bytes === undefined) {
      this.spares.unshift(spare)
      this.startRetry()
      return false
    }
    const salt = getU32(random.bytes(4), 0)
    const durable = await disk.open(path, { mode: 'write', durable: true })
    const sequence = spare.sequence
    const version = LOG_FORMAT_VERSION
    await writeHeader(durable, {
      version,
      identity,
      generation,
      sequence,
      salt,
      firstLsn,
      floorLsn,
      fileBytes: bytes,
    })
    if (this.open !== undefined) {
      const { sequence: before, bytes: length } = this.open
      this.closed.push({ sequence: before, bytes: length, sure: true, endLsn: firstLsn })
      await this.open.durable.close()
    }
    this.open = { sequence, bytes, durable, salt }
    this.position = RECORDS_AT
    this.released.push(...this.held)
    this.held = []
    this.options.onRotated()
    void this.tend()
    return true
  }

  /**
   * Makes sure of the file's length; a single record may be larger than a file, which is then made larger. Answers the
   * length; undefined: no space.
   */
  private async settleLength(
    file: DiskFile,
    spare: IdleFile,
    groupBytes: number,
  ): Promise<number | undefined> {
    const fits = groupBytes <= usable(spare.bytes)
    if (fits && spare.sure === true) return spare.bytes
    const bytes = fits ? spare.bytes : RECORDS_AT + groupBytes + TAIL_BYTES
    try {
      await file.allocate(bytes)
      // The header will tell the length. It goes to the disk with the last page, which a sync alone may take for clean.
      if (spare.sure !== true) await file.write([new Uint8Array(TAIL_BYTES)], bytes - TAIL_BYTES)
      await file.sync()
      return bytes
    } catch (error) {
      if (!foundNoRoom(error)) throw error
      await file.truncate(spare.bytes)
      return undefined
    }
  }

  /** Frees the files that hold only records below `floorLsn`, which a header on disk must tell already. */
  release(floorLsn: number): void {
    let oldest = this.closed[0]
    while (oldest !== undefined && oldest.endLsn <= floorLsn) {
      this.released.push(oldest)
      this.closed.shift()
      oldest = this.closed[0]
    }
    void this.tend()
  }

  /** Reuses what was released and takes space ahead, in the background, one step after another. */
  private tend(): Promise<void> {
    this.tending ??= this.tendAll().finally(() => {
      this.tending = undefined
    })
    return this.tending
  }

  private async tendAll(): Promise<void> {
    try {
      while (!this.stopped && (await this.tendOne())) this.options.onSpace()
    } catch (error) {
      this.options.onFailed(error as Error)
    }
  }

  /** One file; false when there is nothing to do. */
  private async tendOne(): Promise<boolean> {
    const file = this.released.shift()
    if (file !== undefined) {
      await (this.spares.length < SPARES_MAX ? this.reuse(file) : this.discard(file))
      this.noSpace = false
      return true
    }
    if (this.spares.length >= SPARES_AHEAD || this.noSpace) return false
    try {
      await this.make()
      return true
    } catch (error) {
      if (!foundNoRoom(error)) throw error
      await this.options.disk.remove(`${this.options.dir}/${TEMPORARY_NAME}`)
      this.options.log.warn(
        'No disk space for the next log file; writing stops when this one is full',
        {
          dir: this.options.dir,
        },
      )
      this.startRetry()
      return false
    }
  }

  private startRetry(): void {
    this.noSpace = true
    this.options.clock.after(RETRY_MS, () => {
      if (this.stopped) return
      this.noSpace = false
      void this.tend().then(() => this.options.onSpace())
    })
  }

  private async reuse(file: IdleFile): Promise<void> {
    const { disk, dir, fileBytes } = this.options
    const from = this.path(file.sequence)
    const bytes = file.bytes === fileBytes ? fileBytes : await this.resize(from, file.bytes)
    const sequence = this.nextSequence++
    await disk.rename(from, this.path(sequence))
    await disk.syncDir(dir)
    this.spares.push({ sequence, bytes, ...(file.sure && { sure: file.sure }) })
  }

  /** To the length that files have now; without space for more, a shorter file is good as it is. */
  private async resize(path: string, bytes: number): Promise<number> {
    const { disk, fileBytes } = this.options
    const open = await disk.open(path, { mode: 'write' })
    let length = fileBytes
    try {
      if (bytes > fileBytes) await open.truncate(fileBytes)
      else await open.allocate(fileBytes)
    } catch (error) {
      if (!foundNoRoom(error)) throw error
      await open.truncate(bytes)
      length = bytes
    }
    await open.sync()
    await open.close()
    return length
  }

  private async discard(file: IdleFile): Promise<void> {
    await this.options.disk.remove(this.path(file.sequence))
    await this.options.disk.syncDir(this.options.dir)
  }

  private async make(): Promise<void> {
    const { disk, dir, fileBytes, identity } = this.options
    const temporary = `${dir}/${TEMPORARY_NAME}`
    await disk.remove(temporary)
    const file = await disk.open(temporary, { mode: 'create-new' })
    try {
      await this.takeSpace(file)
      await writeHeader(file, {
        version: LOG_FORMAT_VERSION,
        identity,
        generation: 0,
        sequence: 0,
        salt: 0,
        firstLsn: 0,
        floorLsn: 0,
        fileBytes,
      })
      await file.sync()
    } finally {
      await file.close()
    }
    const sequence = this.nextSequence++
    await disk.rename(temporary, this.path(sequence))
    await disk.syncDir(dir)
    this.spares.push({ sequence, bytes: fileBytes, sure: true })
  }

  /** In steps, and with pauses as long as these: groups that are written meanwhile would wait behind a whole file's sync. */
  private async takeSpace(file: DiskFile): Promise<void> {
    const { clock, fileBytes } = this.options
    for (let at = 0; at < fileBytes; ) {
      const beganMs = clock.monotonic()
      at = Math.min(fileBytes, at + SPACE_STEP_BYTES)
      await file.allocate(at)
      await file.sync()
      const tookMs = clock.monotonic() - beganMs
      const hurry = this.stopped || this.remaining < fileBytes / 2
      if (hurry || tookMs === 0 || at === fileBytes) continue
      await new Promise<void>((resolve) => void clock.after(tookMs, resolve))
    }
  }

  private path(sequence: number): string {
    return `${this.options.dir}/${fileName(sequence)}`
  }

  /** Resolves when the background has nothing more to do. */
  async settled(): Promise<void> {
    await this.tending
  }

  async close(): Promise<void> {
    this.stopped = true
    await this.tending
    await this.open?.durable.close()
  }
}

function usable(fileBytes: number): number {
  return fileBytes - TAIL_BYTES
}

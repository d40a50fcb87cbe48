// A disk in memory that can lose what a real one can lose.
//
//   const sim = simDisk({ seed })
//   const disk = sim.mount()                    the running process's view
//   ... sim.crash({ keepUnsynced: false }) ...  the process is gone; calls through `disk` never come back
//   const again = sim.mount()                   what the next process finds
//
// keepUnsynced true is a killed process (the page cache lives, and may be lost by a later power cut), false a power cut
// that keeps nothing that was not synced, 'some' one that keeps any pages and any names, as the seed decides. Of a write
// that was under way, any pages may be there. Every operation counts, so that a test can crash at each of them in turn.

import { assert } from '../../base/assert.ts'
import { concatBytes, equalBytes } from '../../base/bytes.ts'
import { type Prng, prng } from '../../base/prng.ts'
import {
  type DirEntry,
  type Disk,
  DiskError,
  type DiskFile,
  type DiskLock,
  type DiskSpace,
  type OpenOptions,
} from '../../ports/disk.ts'
import { SimFile, writeSomePages } from './sim-file.ts'
import { bytesBelow, SimTree } from './sim-tree.ts'

export interface SimDiskOptions {
  readonly seed?: number
  readonly totalBytes?: number
  /** Runs the rest of an operation when it has taken its time; at once by default (in a microtask). */
  readonly later?: (run: () => void) => void
}

export interface Crash {
  readonly keepUnsynced: boolean | 'some'
}

export interface SimDisk {
  mount(): Disk
  /** Operations begun since the disk was made. */
  readonly operations: number
  crash(crash: Crash): void
  /** Crashes when operation number `operation` (the first is 1) has begun; resolves then. */
  crashAt(operation: number, crash: Crash): Promise<void>
}

export function simDisk(options: SimDiskOptions = {}): SimDisk {
  return new Platter(options)
}

const TOTAL_BYTES = 2 ** 40

interface UnfinishedWrite {
  readonly file: SimFile
  readonly bytes: Uint8Array
  readonly position: number
}

class Platter implements SimDisk {
  readonly tree: SimTree = new SimTree()
  readonly totalBytes: number
  readonly locks: Set<string> = new Set<string>()
  readonly unfinished: Set<UnfinishedWrite> = new Set<UnfinishedWrite>()
  operations = 0
  private mounted = 0
  private readonly chance: Prng
  private readonly later: (run: () => void) => void
  private planned: { readonly at: number; readonly crash: Crash; readonly told: () => void }[] = []

  constructor(options: SimDiskOptions) {
    this.totalBytes = options.totalBytes ?? TOTAL_BYTES
    this.chance = prng(options.seed ?? 1)
    this.later = options.later ?? queueMicrotask
  }

  mount(): Disk {
    return new MountedDisk(this, this.mounted)
  }

  isMounted(mount: number): boolean {
    return mount === this.mounted
  }

  crash(crash: Crash): void {
    this.mounted++
    this.locks.clear()
    const { keepUnsynced } = crash
    if (keepUnsynced !== false) {
      for (const { file, bytes, position } of this.unfinished) {
        writeSomePages(file, bytes, position, this.chance)
      }
    }
    this.unfinished.clear()
    if (keepUnsynced !== true) this.tree.powerCut(keepUnsynced === 'some' ? this.chance : undefined)
  }

  crashAt(operation: number, crash: Crash): Promise<void> {
    return new Promise((told) => {
      this.planned.push({ at: operation, crash, told })
    })
  }

  /** Begins an operation of a mount. After a crash it neither happens nor returns. */
  operate<T>(mount: number, effect: () => T): Promise<T> {
    if (mount !== this.mounted) return new Promise(() => undefined)
    this.operations++
    const crashing = this.planned.filter((plan) => plan.at === this.operations)
    this.planned = this.planned.filter((plan) => plan.at !== this.operations)
    for (const { crash, told } of crashing) {
      this.crash(crash)
      told()
    }
    return new Promise((resolve, reject) => {
      this.later(() => {
        if (mount !== this.mounted) return
        try {
          resolve(effect())
        } catch (error) {
          reject(error as Error)
        }
      })
    })
  }

  usedBytes(): number {
    return bytesBelow(this.tree.dir('.'))
  }
}

class MountedDisk implements Disk {
  private readonly platter: Platter
  private readonly id: number

  constructor(platter: Platter, id: number) {
    this.platter = platter
    this.id = id
  }

  private operate<T>(effect: () => T): Promise<T> {
    return this.platter.operate(this.id, effect)
  }

  open(path: string, options: OpenOptions): Promise<DiskFile> {
    checkPath(path)
    const { tree } = this.platter
    return this.operate(() => {
      const { dir, name } = tree.place(path)
      const found = dir.current.get(name)
      if (found?.kind === 'directory') throw new DiskError('io', path, `${path} is a directory`)
      if (found !== undefined && options.mode === 'create-new')
        throw new DiskError('exists', path, `cannot open ${path}: it exists already`)
      if (found !== undefined) return this.file(path, found, options)
      if (options.mode === 'read' || options.mode === 'write')
        throw new DiskError('not-found', path, `cannot open ${path}: it does not exist`)
      const file = new SimFile()
      tree.change([{ dir, name, node: file }])
      return this.file(path, file, options)
    })
  }

  private file(path: string, file: SimFile, options: OpenOptions): DiskFile {
    return new MountedFile(this.platter, this.id, path, file, options)
  }

  makeDir(path: string): Promise<void> {
    checkPath(path)
    return this.operate(() => this.platter.tree.makeDir(path))
  }

  list(path: string): Promise<readonly DirEntry[]> {
    checkPath(path)
    return this.operate(() =>
      [...this.platter.tree.dir(path).current].map(([name, { kind }]) => ({ name, kind })),
    )
  }

  rename(from: string, to: string): Promise<void> {
    checkPath(from)
    checkPath(to)
    const { tree } = this.platter
    return this.operate(() => {
      const source = tree.place(from)
      const node = source.dir.current.get(source.name)
      if (node === undefined)
        throw new DiskError('not-found', from, `cannot rename ${from}: it does not exist`)
      const target = tree.place(to)
      const replaced = target.dir.current.get(target.name)
      const filled = replaced?.kind === 'directory' && replaced.current.size > 0
      if (replaced !== undefined && (filled || replaced.kind !== node.kind))
        throw new DiskError('exists', to, `cannot rename ${from} to ${to}: it exists already`)
      tree.change([
        { ...source, node: undefined },
        { ...target, node },
      ])
    })
  }

  remove(path: string): Promise<void> {
    checkPath(path)
    const { tree } = this.platter
    return this.operate(() => {
      if (tree.find(path) !== undefined) tree.change([{ ...tree.place(path), node: undefined }])
    })
  }

  syncDir(path: string): Promise<void> {
    checkPath(path)
    return this.operate(() => this.platter.tree.syncDir(this.platter.tree.dir(path)))
  }

  space(): Promise<DiskSpace> {
    return this.operate(() => {
      const { totalBytes } = this.platter
      return { totalBytes, freeBytes: totalBytes - this.platter.usedBytes() }
    })
  }

  lock(path: string): Promise<DiskLock> {
    checkPath(path)
    const { locks, tree } = this.platter
    return this.operate(() => {
      if (locks.has(path)) {
        throw new DiskError('locked', path, `cannot lock ${path}: it is held by another process`)
      }
      tree.makeDir(path)
      locks.add(path)
      return {
        release: () =>
          this.operate(() => {
            locks.delete(path)
          }),
      }
    })
  }
}

class MountedFile implements DiskFile {
  readonly path: string
  private readonly platter: Platter
  private readonly mount: number
  private readonly file: SimFile
  private readonly options: OpenOptions
  private closed = false

  constructor(platter: Platter, mount: number, path: string, file: SimFile, options: OpenOptions) {
    this.platter = platter
    this.mount = mount
    this.path = path
    this.file = file
    this.options = options
  }

  private operate<T>(effect: () => T): Promise<T> {
    assert(!this.closed, `${this.path} is used after it was closed`)
    return this.platter.operate(this.mount, effect)
  }

  read(into: Uint8Array, position: number): Promise<number> {
    return this.operate(() => this.file.read(into, position))
  }

  write(buffers: readonly Uint8Array[], position: number): Promise<void> {
    const bytes = concatBytes(buffers)
    const write: UnfinishedWrite = { file: this.file, bytes, position }
    const { unfinished } = this.platter
    // A process that is gone may still be running here; its writes must not reach the disk at the next crash.
    if (this.platter.isMounted(this.mount)) unfinished.add(write)
    return this.operate(() => {
      unfinished.delete(write)
      assert(
        equalBytes(bytes, concatBytes(buffers)),
        `the buffers of a write to ${this.path} changed before it was done`,
      )
      this.checkWritable()
      if (bytes.length === 0) return
      this.takeSpace(position + bytes.length)
      this.file.write(bytes, position)
      if (this.options.durable === true) this.file.syncRange(position, bytes.length)
    })
  }

  sync(): Promise<void> {
    return this.operate(() => this.file.sync())
  }

  size(): Promise<number> {
    return this.operate(() => this.file.size)
  }

  truncate(length: number): Promise<void> {
    return this.operate(() => {
      this.checkWritable()
      this.file.truncate(length)
    })
  }

  allocate(length: number): Promise<void> {
    return this.operate(() => {
      this.checkWritable()
      if (length <= this.file.size) return
      this.takeSpace(length)
      const before = this.file.size
      this.file.truncate(length)
      if (this.options.durable === true) this.file.syncRange(before, length - before)
    })
  }

  close(): Promise<void> {
    if (this.closed) return Promise.resolve()
    const done = this.operate(() => undefined)
    this.closed = true
    return done
  }

  private checkWritable(): void {
    if (this.options.mode !== 'read') return
    throw new DiskError('io', this.path, `cannot write ${this.path}: it is open for reading only`)
  }

  private takeSpace(end: number): void {
    const more = end - this.file.size
    if (this.platter.totalBytes === TOTAL_BYTES) return
    if (more <= 0 || this.platter.usedBytes() + more <= this.platter.totalBytes) return
    throw new DiskError('full', this.path, `cannot write ${this.path}: the disk is full`)
  }
}

function checkPath(path: string): void {
  if (path === '.') return
  for (const part of path.split('/')) {
    assert(
      part !== '' && part !== '.' && part !== '..' && !part.includes('\0'),
      `"${path}" is not a path inside the data directory`,
    )
  }
}

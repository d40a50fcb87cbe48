// The disk port as one process has it. Each call is a piece of work that the platter runs in its turn, or not at all:
//
//   run       all of it, when it ends well
//   stopped   as much as was done when the machine stopped in the middle, as luck will have it
//   failed    as much as was done when the system reported an error: a prefix of a write is there, a sync has lied
//
// The port promises whole reads and writes. That the system below gave short ones is seen in what an error leaves.

import { assert } from '../../base/assert.ts'
import { concatBytes } from '../../base/bytes.ts'
import type { Prng } from '../../base/prng.ts'
import {
  type DirEntry,
  type Disk,
  DiskError,
  type DiskFile,
  type DiskLock,
  type DiskSpace,
  type OpenOptions,
} from '../../ports/disk.ts'
import type { Platter } from './disk.ts'
import { diskFault, type Operation } from './disk-faults.ts'
import { type Luck, PAGE_BYTES, SimFile } from './sim-file.ts'
import type { Step } from './sim-tree.ts'

export interface DiskWork<T> {
  readonly what: Omit<Operation, 'number'>
  run(): T
  stopped?(luck: Luck): void
  failed?(chance: Prng): void
}

/** What a durable `allocate` writes, over and over. */
const ZEROS: Uint8Array = new Uint8Array(64 * PAGE_BYTES)

export class MountedDisk implements Disk {
  private readonly platter: Platter
  private readonly mount: number

  constructor(platter: Platter) {
    this.platter = platter
    this.mount = platter.crashes
  }

  private operate<T>(work: DiskWork<T>): Promise<T> {
    return this.platter.operate(this.mount, work)
  }

  open(path: string, options: OpenOptions): Promise<DiskFile> {
    checkPath(path)
    const opened = (): SimFile => {
      const { tree } = this.platter
      const { dir, name } = tree.place(path)
      const found = dir.current.get(name)
      if (found?.kind === 'directory') throw new DiskError('io', path, `${path} is a directory`)
      if (found !== undefined && options.mode === 'create-new')
        throw diskFault('exists', 'open', path)
      if (found !== undefined) return found
      if (options.mode === 'read' || options.mode === 'write')
        throw diskFault('not-found', 'open', path)
      const node = new SimFile()
      tree.take([{ changes: [{ dir, name, node }] }])
      return node
    }
    return this.operate({
      what: { kind: 'open', path },
      run: () => new MountedFile(this.platter, this.mount, path, opened(), options),
      stopped: ({ chance }) => {
        if (chance.below(2) === 0) ifPossible(opened)
      },
    })
  }

  makeDir(path: string): Promise<void> {
    checkPath(path)
    return this.change({ kind: 'makeDir', path }, () => this.platter.tree.making(path))
  }

  rename(from: string, to: string): Promise<void> {
    checkPath(from)
    checkPath(to)
    return this.change({ kind: 'rename', path: from, to }, () =>
      this.platter.tree.renaming(from, to),
    )
  }

  remove(path: string): Promise<void> {
    checkPath(path)
    assert(path !== '.', 'the data directory itself is never removed')
    return this.change({ kind: 'remove', path }, () => this.platter.tree.removing(path))
  }

  /** Some of the steps, in their order, when it does not come to its end. */
  private change(what: DiskWork<void>['what'], steps: () => readonly Step[]): Promise<void> {
    const { platter } = this
    const part = (chance: Prng): void =>
      ifPossible(() => {
        const all = steps()
        platter.tree.take(all.slice(0, chance.below(all.length + 1)))
      })
    return this.operate({
      what,
      run: () => platter.tree.take(steps()),
      stopped: ({ chance }) => part(chance),
      failed: part,
    })
  }

  list(path: string): Promise<readonly DirEntry[]> {
    checkPath(path)
    return this.operate({
      what: { kind: 'list', path },
      run: () =>
        [...this.platter.tree.dir(path).current].map(([name, { kind }]) => ({ name, kind })),
    })
  }

  syncDir(path: string): Promise<void> {
    checkPath(path)
    return this.operate({
      what: { kind: 'syncDir', path },
      run: () => this.platter.tree.syncDir(this.platter.tree.dir(path)),
    })
  }

  space(): Promise<DiskSpace> {
    return this.operate({
      what: { kind: 'space', path: '.' },
      run: () => this.platter.space(),
    })
  }

  lock(path: string): Promise<DiskLock> {
    checkPath(path)
    const what = { kind: 'lock', path } as const
    return this.operate({
      what,
      run: () => {
        const { locks, tree } = this.platter
        if (locks.has(path)) throw diskFault('locked', 'lock', path)
        tree.take(tree.making(path))
        locks.add(path)
        const run = (): void => void locks.delete(path)
        return { release: () => this.operate({ what, run }) }
      },
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

  private operate<T>(work: DiskWork<T>): Promise<T> {
    assert(!this.closed, `${this.path} is used after it was closed`)
    return this.platter.operate(this.mount, work)
  }

  read(into: Uint8Array, position: number): Promise<number> {
    return this.operate({
      what: { kind: 'read', path: this.path, position, bytes: into.length },
      run: () => this.file.read(into, position),
      failed: (chance) =>
        void this.file.read(into.subarray(0, chance.below(into.length + 1)), position),
    })
  }

  write(buffers: readonly Uint8Array[], position: number): Promise<void> {
    // A copy, since what a crash leaves of it is decided when the buffers may be in use again.
    const bytes = concatBytes(buffers)
    return this.operate({
      what: { kind: 'write', path: this.path, position, bytes: bytes.length },
      run: () => {
        this.checkUnchanged(buffers, bytes)
        this.checkWritable()
        const room = this.roomFor(position + bytes.length) - position
        if (room < bytes.length) {
          this.writePrefix(bytes, position, Math.max(0, room))
          throw diskFault('full', 'write', this.path)
        }
        if (this.options.durable === true) this.file.writeDurable(bytes, position)
        else this.file.write(bytes, position)
      },
      stopped: (luck) => {
        if (this.options.mode !== 'read') this.file.writeSome(bytes, position, luck)
      },
      failed: () => {
        if (this.options.mode !== 'read') this.writePrefix(bytes, position, bytes.length)
      },
    })
  }

  /** The system wrote up to `most` bytes and then could not go on; with O_DSYNC that is a failed sync, too. */
  private writePrefix(bytes: Uint8Array, position: number, most: number): void {
    const chance = this.platter.failing
    this.file.write(bytes.slice(0, chance.below(most + 1)), position)
    if (this.options.durable === true) this.file.failSync(this.file.beginSync(), chance)
  }

  sync(): Promise<void> {
    const ticket = this.file.beginSync()
    return this.operate({
      what: { kind: 'sync', path: this.path },
      run: () => this.file.endSync(ticket),
      failed: (chance) => this.file.failSync(ticket, chance),
    })
  }

  size(): Promise<number> {
    return this.operate({
      what: { kind: 'size', path: this.path },
      run: () => this.file.size,
    })
  }

  truncate(length: number): Promise<void> {
    return this.operate({
      what: { kind: 'truncate', path: this.path, bytes: length },
      run: () => {
        this.checkWritable()
        this.file.truncate(length)
      },
      stopped: ({ chance }) => {
        if (this.options.mode !== 'read' && chance.below(2) === 0) this.file.truncate(length)
      },
    })
  }

  allocate(length: number): Promise<void> {
    return this.operate({
      what: { kind: 'allocate', path: this.path, bytes: length },
      run: () => {
        this.checkWritable()
        const { size } = this.file
        if (length <= size) return
        if (this.roomFor(length) < length) throw diskFault('full', 'allocate', this.path)
        if (this.options.durable !== true) return this.file.truncate(length)
        for (let at = size; at < length; at += ZEROS.length) {
          this.file.writeDurable(ZEROS.subarray(0, length - at), at)
        }
      },
      stopped: ({ chance }) => {
        const { size } = this.file
        if (this.options.mode === 'read' || length <= size) return
        this.file.truncate(size + chance.below(length - size + 1))
      },
    })
  }

  close(): Promise<void> {
    if (this.closed) return Promise.resolve()
    const done = this.operate({ what: { kind: 'close', path: this.path }, run: () => undefined })
    this.closed = true
    return done
  }

  private checkWritable(): void {
    if (this.options.mode !== 'read') return
    throw new DiskError('io', this.path, `cannot write ${this.path}: it is open for reading only`)
  }

  private checkUnchanged(buffers: readonly Uint8Array[], bytes: Uint8Array): void {
    let at = 0
    for (const buffer of buffers) {
      const written = bytes.subarray(at, at + buffer.length)
      assert(
        Buffer.compare(buffer, written) === 0,
        `the buffers of a write to ${this.path} changed before it was done`,
      )
      at += buffer.length
    }
  }

  /** Where a file that wants to reach `end` has to stop. */
  private roomFor(end: number): number {
    const { size } = this.file
    return end <= size ? end : size + this.platter.room(end - size)
  }
}

/** What was still to be done when the machine stopped may have been about to fail anyway. */
function ifPossible(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    if (!(error instanceof DiskError)) throw error
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

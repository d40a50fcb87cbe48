// A disk in memory that forgets: what was not synced is lost at a power cut, page by page and name by name, as the seed
// decides; a killed process leaves it readable. It counts operations and can crash or fail at any of them.

import type { Prng } from '../../../src/base/prng.ts'
import {
  type Disk,
  DiskError,
  type DiskFault,
  type DiskFile,
  type OpenOptions,
} from '../../../src/ports/disk.ts'

const PAGE = 4096

interface Inode {
  bytes: Uint8Array
  size: number
  durable: Uint8Array
  durableSize: number
  readonly dirty: Set<number>
}

type NameOp =
  | { readonly kind: 'link'; readonly path: string; readonly inode: Inode }
  | { readonly kind: 'unlink'; readonly path: string }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string }

export interface CrashDisk extends Disk {
  /** Operations so far. */
  readonly operations: number
  /** The operation with this number has part of its effect, and nothing works after it. */
  crashAt: number
  readonly crashed: boolean
  /** What was called and not yet forgotten by `clearTrace`: 'write <path> <position> <bytes>'. */
  readonly trace: readonly string[]
  clearTrace(): void
  /** Runs before each operation; may wait, or throw what the operation is to fail with. */
  hook: (operation: string, path: string) => Promise<void> | void
  /** Bytes that files may take in all. */
  capacity: number
  /** A new process on the disk as it is: unsynced bytes can be read. */
  kill(): void
  /** A power cut: every unsynced page and name is kept or lost as `chance` says. */
  cutPower(chance: Prng): void
  flipBit(path: string, byte: number, bit: number): void
  /** The disk as one process has it: dead for ever after the next crash, so that nothing of that process goes on. */
  mount(): Disk
  bytesOf(path: string): Uint8Array
  paths(): readonly string[]
}

export function fault(kind: DiskFault): DiskError {
  return new DiskError(kind, 'x', `made to fail: ${kind}`)
}

export function crashDisk(): CrashDisk {
  return new MemoryDisk()
}

class MemoryDisk implements CrashDisk {
  private names = new Map<string, Inode>()
  private durableNames = new Map<string, Inode>()
  private pending: NameOp[] = []
  private dirs = new Set<string>([''])
  private epoch = 0
  operations = 0
  crashAt = Number.POSITIVE_INFINITY
  crashed = false
  trace: string[] = []
  capacity = Number.POSITIVE_INFINITY
  hook: (operation: string, path: string) => Promise<void> | void = () => {}

  clearTrace(): void {
    this.trace = []
  }

  /** True: the operation is to be done in part, and the machine is dead from then on. */
  async step(epoch: number, operation: string, path: string, note: string = ''): Promise<boolean> {
    this.check(epoch)
    this.trace.push(`${operation} ${path}${note}`)
    const last = ++this.operations >= this.crashAt
    await this.hook(operation, path)
    await Promise.resolve()
    this.check(epoch)
    if (last) this.crashed = true
    return last
  }

  private check(epoch: number): void {
    if (this.crashed || epoch !== this.epoch) throw new DiskError('io', '', 'the machine is down')
  }

  die(): never {
    throw new DiskError('io', '', 'the machine went down')
  }

  spaceFor(more: number): void {
    if (this.used() + more > this.capacity) throw fault('full')
  }

  private used(): number {
    let bytes = 0
    for (const inode of this.names.values()) bytes += inode.size
    return bytes
  }

  async open(path: string, options: OpenOptions): Promise<DiskFile> {
    const epoch = this.epoch
    const last = await this.step(epoch, `open-${options.mode}`, path)
    let inode = this.names.get(path)
    if (inode === undefined) {
      if (options.mode === 'read' || options.mode === 'write') {
        throw new DiskError('not-found', path, `${path} is not there`)
      }
      if (!this.dirs.has(dirOf(path)))
        throw new DiskError('not-found', path, `no directory of ${path}`)
      inode = {
        bytes: new Uint8Array(0),
        size: 0,
        durable: new Uint8Array(0),
        durableSize: 0,
        dirty: new Set(),
      }
      this.names.set(path, inode)
      this.pending.push({ kind: 'link', path, inode })
    } else if (options.mode === 'create-new') {
      throw new DiskError('exists', path, `${path} exists`)
    }
    if (last) this.die()
    return new MemoryFile(this, epoch, path, inode, options.durable === true)
  }

  async makeDir(path: string): Promise<void> {
    const last = await this.step(this.epoch, 'mkdir', path)
    const parts = path.split('/')
    for (let i = 1; i <= parts.length; i++) this.dirs.add(parts.slice(0, i).join('/'))
    if (last) this.die()
  }

  async list(path: string): Promise<{ name: string; kind: 'file' | 'directory' }[]> {
    if (await this.step(this.epoch, 'list', path)) this.die()
    if (!this.dirs.has(path)) throw new DiskError('not-found', path, `no directory ${path}`)
    const prefix = path === '' ? '' : `${path}/`
    const found = new Map<string, 'file' | 'directory'>()
    for (const name of this.names.keys()) {
      if (!name.startsWith(prefix)) continue
      const [first = '', second] = name.slice(prefix.length).split('/')
      found.set(first, second === undefined ? 'file' : 'directory')
    }
    for (const dir of this.dirs) {
      if (dir.startsWith(prefix) && dir.length > prefix.length) {
        found.set(dir.slice(prefix.length).split('/')[0] as string, 'directory')
      }
    }
    return [...found].map(([name, kind]) => ({ name, kind }))
  }

  async rename(from: string, to: string): Promise<void> {
    const last = await this.step(this.epoch, 'rename', from, ` -> ${to}`)
    if (!this.names.has(from) && !this.dirs.has(from)) throw new DiskError('not-found', from, from)
    applyRename(this.names, from, to)
    this.pending.push({ kind: 'rename', from, to })
    for (const dir of this.dirs) {
      if (dir === from || dir.startsWith(`${from}/`)) {
        this.dirs.delete(dir)
        this.dirs.add(to + dir.slice(from.length))
      }
    }
    if (last) this.die()
  }

  async remove(path: string): Promise<void> {
    const last = await this.step(this.epoch, 'remove', path)
    for (const name of this.names.keys()) {
      if (name === path || name.startsWith(`${path}/`)) {
        this.names.delete(name)
        this.pending.push({ kind: 'unlink', path: name })
      }
    }
    for (const dir of this.dirs)
      if (dir === path || dir.startsWith(`${path}/`)) this.dirs.delete(dir)
    if (last) this.die()
  }

  async syncDir(path: string): Promise<void> {
    if (await this.step(this.epoch, 'syncdir', path)) this.die()
    const dir = path === '.' ? '' : path
    const rest: NameOp[] = []
    for (const op of this.pending) {
      const mine =
        op.kind === 'rename'
          ? dirOf(op.to) === dir || dirOf(op.from) === dir
          : dirOf(op.path) === dir
      if (mine) apply(this.durableNames, op)
      else rest.push(op)
    }
    this.pending = rest
  }

  async space(): Promise<{ totalBytes: number; freeBytes: number }> {
    const total = Number.isFinite(this.capacity) ? this.capacity : 2 ** 40
    return { totalBytes: total, freeBytes: total - this.used() }
  }

  async lock(): Promise<{ release(): Promise<void> }> {
    return { release: async () => {} }
  }

  mount(): Disk {
    const { epoch } = this
    const alive = <T>(call: () => Promise<T>): Promise<T> => {
      if (epoch === this.epoch) return call()
      return Promise.reject(new DiskError('io', '', 'this process is dead'))
    }
    return {
      open: (path, options) => alive(() => this.open(path, options)),
      makeDir: (path) => alive(() => this.makeDir(path)),
      list: (path) => alive(() => this.list(path)),
      rename: (from, to) => alive(() => this.rename(from, to)),
      remove: (path) => alive(() => this.remove(path)),
      syncDir: (path) => alive(() => this.syncDir(path)),
      space: () => alive(() => this.space()),
      lock: () => alive(() => this.lock()),
    }
  }

  kill(): void {
    this.restart()
  }

  private restart(): void {
    this.epoch++
    this.crashed = false
    this.crashAt = Number.POSITIVE_INFINITY
    this.hook = () => {}
  }

  cutPower(chance: Prng): void {
    for (const op of this.pending) if (chance.below(2) === 0) apply(this.durableNames, op)
    this.pending = []
    this.names = new Map(this.durableNames)
    // A directory that was moved away is back with the files that are.
    for (const name of this.names.keys()) {
      const parts = name.split('/')
      for (let i = 1; i < parts.length; i++) this.dirs.add(parts.slice(0, i).join('/'))
    }
    for (const inode of new Set(this.names.values())) {
      if (inode.dirty.size === 0 && inode.size === inode.durableSize) continue
      const size = chance.below(2) === 0 ? inode.size : inode.durableSize
      const bytes = new Uint8Array(size)
      bytes.set(inode.durable.subarray(0, Math.min(size, inode.durableSize)))
      for (const page of inode.dirty) {
        const from = page * PAGE
        const to = Math.min(size, from + PAGE, inode.size)
        if (from < to && chance.below(2) === 0) bytes.set(inode.bytes.subarray(from, to), from)
      }
      inode.bytes = bytes
      inode.size = size
      inode.durable = bytes.slice()
      inode.durableSize = size
      inode.dirty.clear()
    }
    this.restart()
  }

  flipBit(path: string, byte: number, bit: number): void {
    const inode = this.inode(path)
    for (const bytes of [inode.bytes, inode.durable]) {
      if (byte < bytes.length) bytes[byte] = (bytes[byte] as number) ^ (1 << bit)
    }
  }

  bytesOf(path: string): Uint8Array {
    const inode = this.inode(path)
    return inode.bytes.subarray(0, inode.size)
  }

  private inode(path: string): Inode {
    const inode = this.names.get(path)
    if (inode === undefined) throw new Error(`${path} is not there`)
    return inode
  }

  paths(): readonly string[] {
    return [...this.names.keys()].sort()
  }
}

class MemoryFile implements DiskFile {
  private readonly disk: MemoryDisk
  private readonly epoch: number
  private readonly inode: Inode
  private readonly durable: boolean
  readonly path: string

  constructor(disk: MemoryDisk, epoch: number, path: string, inode: Inode, durable: boolean) {
    this.disk = disk
    this.epoch = epoch
    this.path = path
    this.inode = inode
    this.durable = durable
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    if (await this.disk.step(this.epoch, 'read', this.path)) this.disk.die()
    const { bytes, size } = this.inode
    const end = Math.min(size, position + into.length)
    if (end <= position) return 0
    into.set(bytes.subarray(position, end))
    return end - position
  }

  async write(buffers: readonly Uint8Array[], position: number): Promise<void> {
    const length = buffers.reduce((sum, buffer) => sum + buffer.length, 0)
    const last = await this.disk.step(this.epoch, 'write', this.path, ` ${position} ${length}`)
    this.disk.spaceFor(Math.max(0, position + length - this.inode.size))
    let at = position
    for (const buffer of buffers) {
      this.put(buffer, at)
      at += buffer.length
    }
    if (last) this.disk.die()
    if (this.durable) this.harden(position, at)
  }

  private put(buffer: Uint8Array, at: number): void {
    const inode = this.inode
    const end = at + buffer.length
    if (end > inode.bytes.length) {
      const larger = new Uint8Array(Math.max(end, 2 * inode.bytes.length))
      larger.set(inode.bytes)
      inode.bytes = larger
    }
    inode.bytes.set(buffer, at)
    inode.size = Math.max(inode.size, end)
    for (let page = Math.floor(at / PAGE); page * PAGE < end; page++) inode.dirty.add(page)
  }

  /** Bytes [from, to) are on the platter; the rest of their pages may share the way there. */
  private harden(from: number, to: number): void {
    const inode = this.inode
    if (inode.durable.length < inode.size) {
      const larger = new Uint8Array(inode.bytes.length)
      larger.set(inode.durable)
      inode.durable = larger
    }
    inode.durableSize = Math.max(inode.durableSize, inode.size)
    inode.durable.set(inode.bytes.subarray(from, to), from)
    for (let page = Math.floor(from / PAGE); page * PAGE < to; page++) {
      const whole = page * PAGE >= from && Math.min((page + 1) * PAGE, inode.size) <= to
      if (whole) inode.dirty.delete(page)
    }
  }

  async sync(): Promise<void> {
    if (await this.disk.step(this.epoch, 'sync', this.path)) this.disk.die()
    const inode = this.inode
    inode.durable = inode.bytes.slice(0, inode.size)
    inode.durableSize = inode.size
    inode.dirty.clear()
  }

  async size(): Promise<number> {
    return this.inode.size
  }

  async truncate(length: number): Promise<void> {
    const last = await this.disk.step(this.epoch, 'truncate', this.path)
    const inode = this.inode
    inode.bytes.fill(0, length)
    inode.size = Math.min(inode.size, length)
    if (last) this.disk.die()
  }

  async allocate(length: number): Promise<void> {
    const last = await this.disk.step(this.epoch, 'allocate', this.path)
    const more = length - this.inode.size
    if (more > 0) {
      this.disk.spaceFor(more)
      this.put(new Uint8Array(more), this.inode.size)
    }
    if (last) this.disk.die()
  }

  async close(): Promise<void> {}
}

function apply(names: Map<string, Inode>, op: NameOp): void {
  if (op.kind === 'link') names.set(op.path, op.inode)
  else if (op.kind === 'unlink') names.delete(op.path)
  else applyRename(names, op.from, op.to)
}

function applyRename(names: Map<string, Inode>, from: string, to: string): void {
  for (const [name, inode] of Array.from(names)) {
    if (name !== from && !name.startsWith(`${from}/`)) continue
    names.delete(name)
    names.set(to + name.slice(from.length), inode)
  }
}

function dirOf(path: string): string {
  const slash = path.lastIndexOf('/')
  return slash < 0 ? '' : path.slice(0, slash)
}

// A disk that misbehaves on command, around any other: real, for torture, or simulated. It adds nothing of its own to
// what passes while no fault is set.
//
// Faults are told as real disks have them:
//   full        nothing grows and nothing is made, but blocks that a file has can be written over
//   read-only   as after a remount: what is there is read, nothing is changed
//   a failed sync   the bytes went out and can be read back; whether they will be there after a power cut nobody knows.
//               A write to a file that was opened `durable` is a sync as well: slow syncs slow it down, and a planned
//               failure of a sync meets it

import type { Clock } from '../../ports/clock.ts'
import { type Disk, DiskError, type DiskFault, type DiskFile } from '../../ports/disk.ts'
import { meaningOf } from '../disk/faults.ts'

type DiskOperation = keyof Disk | Exclude<keyof DiskFile, 'path' | 'close'>

interface DiskFaults {
  /** Every operation takes so much longer; 0 ends it. */
  slowDown(ms: number): void
  /** Every sync, of a file or a directory, takes so much longer; 0 ends it. */
  slowSyncs(ms: number): void
  /** The next `times` operations of this kind on paths that begin with `prefix` fail. */
  failNext(operation: DiskOperation, fault: DiskFault, times?: number, prefix?: string): void
  /** What `failNext` planned and has not happened yet will not. */
  failNoMore(): void
  setFull(full: boolean): void
  setReadOnly(readOnly: boolean): void
}

export interface FaultyDisk {
  readonly disk: Disk
  readonly faults: DiskFaults
}

interface Plan {
  readonly operation: DiskOperation
  readonly fault: DiskFault
  readonly prefix: string
  times: number
}

/** What one call is about to do. */
interface Act<T> {
  readonly operation: DiskOperation
  readonly path: string
  /** It resolves when something is durable. */
  readonly syncs?: boolean
  readonly changes?: boolean
  /** Asked only while the disk is full. */
  readonly takesSpace?: () => Promise<boolean>
  run(): Promise<T>
}

export function faultyDisk(inner: Disk, clock: Clock): FaultyDisk {
  const control = new Control(clock)
  const disk: Disk = {
    open: (path, options) =>
      control.run({
        operation: 'open',
        path,
        changes: options.mode !== 'read',
        run: async () =>
          faultyFile(await inner.open(path, options), control, options.durable === true),
      }),
    makeDir: (path) =>
      control.run({
        operation: 'makeDir',
        path,
        changes: true,
        takesSpace: () =>
          inner.list(path).then(
            () => false,
            () => true,
          ),
        run: () => inner.makeDir(path),
      }),
    list: (path) => control.run({ operation: 'list', path, run: () => inner.list(path) }),
    rename: (from, to) =>
      control.run({
        operation: 'rename',
        path: from,
        changes: true,
        run: () => inner.rename(from, to),
      }),
    remove: (path) =>
      control.run({ operation: 'remove', path, changes: true, run: () => inner.remove(path) }),
    syncDir: (path) =>
      control.run({ operation: 'syncDir', path, syncs: true, run: () => inner.syncDir(path) }),
    space: () =>
      control.run({
        operation: 'space',
        path: '.',
        run: async () => {
          const space = await inner.space()
          return control.full ? { ...space, freeBytes: 0 } : space
        },
      }),
    lock: (path) =>
      control.run({ operation: 'lock', path, changes: true, run: () => inner.lock(path) }),
  }
  return { disk, faults: control }
}

function faultyFile(file: DiskFile, control: Control, durable: boolean): DiskFile {
  const { path } = file
  return {
    path,
    read: (into, position) =>
      control.run({ operation: 'read', path, run: () => file.read(into, position) }),
    write: (buffers, position) =>
      control.run({
        operation: 'write',
        path,
        syncs: durable,
        changes: true,
        takesSpace: async () => position + lengthOf(buffers) > (await file.size()),
        run: () => file.write(buffers, position),
      }),
    sync: () => control.run({ operation: 'sync', path, syncs: true, run: () => file.sync() }),
    size: () => control.run({ operation: 'size', path, run: () => file.size() }),
    truncate: (length) =>
      control.run({
        operation: 'truncate',
        path,
        changes: true,
        run: () => file.truncate(length),
      }),
    allocate: (length) =>
      control.run({
        operation: 'allocate',
        path,
        changes: true,
        takesSpace: async () => length > (await file.size()),
        run: () => file.allocate(length),
      }),
    close: () => file.close(),
  }
}

function lengthOf(buffers: readonly Uint8Array[]): number {
  return buffers.reduce((sum, buffer) => sum + buffer.length, 0)
}

class Control implements DiskFaults {
  full = false
  private readonly clock: Clock
  private readOnly = false
  private delayMs = 0
  private syncDelayMs = 0
  private plans: Plan[] = []

  constructor(clock: Clock) {
    this.clock = clock
  }

  slowDown(ms: number): void {
    this.delayMs = ms
  }

  slowSyncs(ms: number): void {
    this.syncDelayMs = ms
  }

  failNext(
    operation: DiskOperation,
    fault: DiskFault,
    times: number = 1,
    prefix: string = '',
  ): void {
    this.plans.push({ operation, fault, prefix, times })
  }

  failNoMore(): void {
    this.plans = []
  }

  setFull(full: boolean): void {
    this.full = full
  }

  setReadOnly(readOnly: boolean): void {
    this.readOnly = readOnly
  }

  async run<T>(act: Act<T>): Promise<T> {
    const { clock } = this
    const { operation, path } = act
    const delayMs = this.delayMs + (act.syncs === true ? this.syncDelayMs : 0)
    if (delayMs > 0) await new Promise<void>((resolve) => void clock.after(delayMs, resolve))
    const planned = this.planned(operation, path)
    if (planned !== undefined) throw faultOf(planned, operation, path)
    if (this.readOnly && act.changes === true) throw faultOf('read-only', operation, path)
    if (this.full && (await act.takesSpace?.()) === true) throw faultOf('full', operation, path)
    if (operation !== 'write' || act.syncs !== true) return act.run()
    const failedSync = this.planned('sync', path)
    const result = await act.run()
    if (failedSync !== undefined) throw faultOf(failedSync, operation, path)
    return result
  }

  /** The fault that was planned for this operation, which is thereby used up once. */
  private planned(operation: DiskOperation, path: string): DiskFault | undefined {
    const plan = this.plans.find((p) => p.operation === operation && path.startsWith(p.prefix))
    if (plan === undefined) return undefined
    plan.times--
    this.plans = this.plans.filter((p) => p.times > 0)
    return plan.fault
  }
}

function faultOf(fault: DiskFault, operation: DiskOperation, path: string): DiskError {
  return new DiskError(fault, path, `cannot ${operation} ${path}: ${meaningOf(fault)} (injected)`)
}

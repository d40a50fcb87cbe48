// A disk that misbehaves on command, around any other: real, for torture, or simulated. It adds nothing of its own to
// what passes while no fault is set.

import type { Clock } from '../../ports/clock.ts'
import { type Disk, DiskError, type DiskFault, type DiskFile } from '../../ports/disk.ts'

type DiskOperation = Exclude<keyof Disk, 'lock'> | Exclude<keyof DiskFile, 'path' | 'close'>

interface DiskFaults {
  /** Every operation takes so much longer; 0 ends it. */
  slowDown(ms: number): void
  /** The next `times` operations of this kind on paths that begin with `prefix` fail. */
  failNext(operation: DiskOperation, fault: DiskFault, times?: number, prefix?: string): void
  /** While full, nothing can be written, allocated or made. */
  setFull(full: boolean): void
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

const TAKES_SPACE: ReadonlySet<DiskOperation> = new Set(['write', 'allocate', 'makeDir'])

export function faultyDisk(inner: Disk, clock: Clock): FaultyDisk {
  const control = new Control(clock)
  const run = control.run.bind(control)
  const wrap = (file: DiskFile): DiskFile => ({
    path: file.path,
    read: (into, position) => run('read', file.path, () => file.read(into, position)),
    write: (buffers, position) => run('write', file.path, () => file.write(buffers, position)),
    sync: () => run('sync', file.path, () => file.sync()),
    size: () => run('size', file.path, () => file.size()),
    truncate: (length) => run('truncate', file.path, () => file.truncate(length)),
    allocate: (length) => run('allocate', file.path, () => file.allocate(length)),
    close: () => file.close(),
  })
  const disk: Disk = {
    open: (path, options) => run('open', path, async () => wrap(await inner.open(path, options))),
    makeDir: (path) => run('makeDir', path, () => inner.makeDir(path)),
    list: (path) => run('list', path, () => inner.list(path)),
    rename: (from, to) => run('rename', from, () => inner.rename(from, to)),
    remove: (path) => run('remove', path, () => inner.remove(path)),
    syncDir: (path) => run('syncDir', path, () => inner.syncDir(path)),
    space: () =>
      run('space', '.', async () => {
        const space = await inner.space()
        return control.full ? { ...space, freeBytes: 0 } : space
      }),
    lock: (path) => inner.lock(path),
  }
  return { disk, faults: control }
}

class Control implements DiskFaults {
  full = false
  private readonly clock: Clock
  private delayMs = 0
  private plans: Plan[] = []

  constructor(clock: Clock) {
    this.clock = clock
  }

  slowDown(ms: number): void {
    this.delayMs = ms
  }

  failNext(
    operation: DiskOperation,
    fault: DiskFault,
    times: number = 1,
    prefix: string = '',
  ): void {
    this.plans.push({ operation, fault, prefix, times })
  }

  setFull(full: boolean): void {
    this.full = full
  }

  async run<T>(operation: DiskOperation, path: string, act: () => Promise<T>): Promise<T> {
    const { clock, delayMs } = this
    if (delayMs > 0) await new Promise<void>((resolve) => void clock.after(delayMs, resolve))
    const error = this.decide(operation, path)
    if (error !== undefined) throw error
    return act()
  }

  private decide(operation: DiskOperation, path: string): DiskError | undefined {
    const plan = this.plans.find((p) => p.operation === operation && path.startsWith(p.prefix))
    if (plan !== undefined) {
      plan.times--
      this.plans = this.plans.filter((p) => p.times > 0)
      return new DiskError(plan.fault, path, `cannot ${operation} ${path}: a fault was injected`)
    }
    if (this.full && TAKES_SPACE.has(operation)) {
      return new DiskError('full', path, `cannot ${operation} ${path}: the disk is full`)
    }
    return undefined
  }
}

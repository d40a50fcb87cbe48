// A disk in memory that can lose what a real one can lose, and fail as a real one fails.
//
//   const sim = simDisk({ seed })
//   const disk = sim.mount()                    the running process's view
//   ... sim.crash({ keepUnsynced: false }) ...  the process is gone; calls through `disk` never come back
//   const again = sim.mount()                   what the next process finds
//
// keepUnsynced true is a killed process (the page cache lives, and may be lost by a later power cut), false a power cut
// that keeps nothing that was not synced, 'some' one that keeps any pages and any names, as the seed decides. Of an
// operation that was under way, any part may be there. Every operation counts, so that a test can crash at each of them
// in turn.
//
// The parts: sim-file.ts has what becomes of bytes, sim-tree.ts what becomes of names, disk-faults.ts what fails while
// the process lives, disk-mount.ts the port itself. Here is what they share: one order of operations under one seed.

import { assert } from '../../base/assert.ts'
import { type Prng, prng } from '../../base/prng.ts'
import { type Disk, DiskError, type DiskSpace } from '../../ports/disk.ts'
import { type FaultPlan, type FaultRates, Faults, type Operation } from './disk-faults.ts'
import { type DiskWork, MountedDisk } from './disk-mount.ts'
import type { Luck, SimFile } from './sim-file.ts'
import { SimTree } from './sim-tree.ts'

export interface SimDiskOptions {
  readonly seed?: number
  readonly capacityBytes?: number
  readonly faults?: FaultRates
  /** What the disk holds at first: another's `snapshot`. */
  readonly image?: DiskImage
  /** Keeps what was called, in `trace`. */
  readonly trace?: boolean
  /**
   * Runs the rest of an operation when it has taken its time, and `slowMs` more; by default at once (in a microtask),
   * however slow. Operations that wait at the same time may end in any order.
   */
  readonly later?: (run: () => void, slowMs: number) => void
}

export interface Crash {
  readonly keepUnsynced: boolean | 'some'
}

export interface DiskImage {
  /** Not for use but in `simDisk` and `restore`. */
  readonly tree: SimTree
}

export interface SimDisk {
  mount(): Disk
  /** Operations begun since the disk was made. */
  readonly operations: number
  /** Operations that failed by a fault, or for want of space. */
  readonly failures: number
  /** Crashes so far: a process whose number has passed is dead. */
  readonly crashes: number
  crash(crash: Crash): void
  /** Crashes when operation number `operation` (the first is 1) has begun; resolves then. */
  crashAt(operation: number, crash: Crash): Promise<void>

  /** Bytes that files may take in all. */
  capacityBytes: number
  /** Of all files, as they are now. */
  usedBytes(): number
  faults: FaultRates
  /** The next operation of a kind fails, or several; the answer takes that back. */
  fail(plan: FaultPlan): () => void
  /** Runs before each operation, which waits for it, and fails when it throws. */
  before: ((operation: Operation) => Promise<void> | void) | undefined
  /** Lets the end of an operation into the process that asked; by default at once. Of a paused one it waits. */
  answer: (run: () => void) => void
  /** What was called since `forgetTrace`, if the disk was made to keep it. */
  readonly trace: readonly Operation[]
  forgetTrace(): void

  /** Everything that is on the disk and in its cache. Pages are shared, so it is cheap: no bytes are copied. */
  snapshot(): DiskImage
  /** The disk is as it was: nothing is left of what came later, nor of the process. */
  restore(image: DiskImage): void
  /** The files, sorted. */
  paths(): readonly string[]
  bytesOf(path: string): Uint8Array
  /** Files below some directories as they would be if the power failed now and nothing was kept but what is certain. */
  durable(prefixes: readonly string[]): Iterable<readonly [path: string, bytes: Uint8Array]>
  flipBit(path: string, byte: number, bit: number): void
}

export function simDisk(options: SimDiskOptions = {}): SimDisk {
  return new Platter(options)
}

/** What `space` tells of a disk without end. */
const TOTAL_BYTES = 2 ** 40

export class Platter implements SimDisk {
  tree: SimTree
  readonly locks: Set<string> = new Set<string>()
  operations = 0
  failures = 0
  crashes = 0
  capacityBytes: number
  before: ((operation: Operation) => Promise<void> | void) | undefined
  answer: (run: () => void) => void = (run) => run()
  trace: Operation[] = []
  /** Of what a failed operation leaves behind. */
  readonly failing: Prng
  private readonly crashing: Prng
  private readonly misfortunes: Faults
  private readonly traced: boolean
  private readonly later: (run: () => void, slowMs: number) => void
  private readonly unfinished: Set<DiskWork<unknown>> = new Set<DiskWork<unknown>>()
  private planned: { readonly at: number; readonly crash: Crash; readonly told: () => void }[] = []

  constructor(options: SimDiskOptions) {
    const chance = prng(options.seed ?? 1)
    this.crashing = prng(chance.u32())
    this.failing = prng(chance.u32())
    this.misfortunes = new Faults(options.faults ?? {}, prng(chance.u32()))
    this.tree = options.image?.tree.copy() ?? new SimTree()
    this.capacityBytes = options.capacityBytes ?? Number.POSITIVE_INFINITY
    this.traced = options.trace ?? false
    this.later = options.later ?? queueMicrotask
  }

  mount(): Disk {
    return new MountedDisk(this)
  }

  crash(crash: Crash): void {
    this.crashes++
    this.locks.clear()
    const { keepUnsynced } = crash
    const luck = lucky(this.crashing)
    const stopped = [...this.unfinished]
    this.unfinished.clear()
    if (keepUnsynced !== false) for (const work of stopped) work.stopped?.(luck)
    if (keepUnsynced !== true) this.tree.powerCut(keepUnsynced === 'some' ? luck : undefined)
  }

  crashAt(operation: number, crash: Crash): Promise<void> {
    return new Promise((told) => {
      this.planned.push({ at: operation, crash, told })
    })
  }

  get faults(): FaultRates {
    return this.misfortunes.rates
  }

  set faults(rates: FaultRates) {
    this.misfortunes.rates = rates
  }

  fail(plan: FaultPlan): () => void {
    return this.misfortunes.plan(plan)
  }

  forgetTrace(): void {
    this.trace = []
  }

  /** Begins an operation of a mount. After a crash it neither happens nor returns. */
  operate<T>(mount: number, work: DiskWork<T>): Promise<T> {
    if (mount !== this.crashes) return never()
    const operation: Operation = { number: ++this.operations, ...work.what }
    if (this.traced) this.trace.push(operation)
    this.unfinished.add(work)
    this.crashAsPlanned()
    if (mount !== this.crashes) return never()
    const { error, slowMs } = this.misfortunes.decide(operation)
    return new Promise((resolve, reject) => {
      const fail = (cause: Error): void => {
        this.failures++
        this.unfinished.delete(work)
        work.failed?.(this.failing)
        reject(cause)
      }
      const end = (): void => {
        if (mount !== this.crashes) return
        if (error !== undefined) return fail(error)
        this.unfinished.delete(work)
        try {
          resolve(work.run())
        } catch (cause) {
          if (cause instanceof DiskError && cause.fault === 'full') this.failures++
          reject(cause as Error)
        }
      }
      const answer = (): void => this.later(() => this.answer(end), slowMs)
      if (this.before === undefined) return answer()
      this.hold(operation).then(answer, (cause: unknown) => {
        if (mount === this.crashes) fail(cause as Error)
      })
    })
  }

  private async hold(operation: Operation): Promise<void> {
    await this.before?.(operation)
  }

  private crashAsPlanned(): void {
    const due = this.planned.filter((plan) => plan.at === this.operations)
    if (due.length === 0) return
    this.planned = this.planned.filter((plan) => plan.at !== this.operations)
    for (const { crash, told } of due) {
      this.crash(crash)
      told()
    }
  }

  space(): DiskSpace {
    // Asked every second: of a disk without end nothing need be counted.
    if (this.capacityBytes === Number.POSITIVE_INFINITY) {
      return { totalBytes: TOTAL_BYTES, freeBytes: TOTAL_BYTES }
    }
    const totalBytes = this.capacityBytes
    return { totalBytes, freeBytes: Math.max(0, totalBytes - this.usedBytes()) }
  }

  /** How many of the bytes that a file wants to grow by there are. */
  room(wanted: number): number {
    if (wanted <= 0 || this.capacityBytes === Number.POSITIVE_INFINITY) return wanted
    return Math.max(0, Math.min(wanted, this.capacityBytes - this.usedBytes()))
  }

  usedBytes(): number {
    let bytes = 0
    for (const [, node] of this.tree.nodes()) if (node.kind === 'file') bytes += node.size
    return bytes
  }

  snapshot(): DiskImage {
    return { tree: this.tree.copy() }
  }

  restore(image: DiskImage): void {
    this.crash({ keepUnsynced: false })
    this.tree = image.tree.copy()
  }

  paths(): readonly string[] {
    const found: string[] = []
    for (const [path, node] of this.tree.nodes()) if (node.kind === 'file') found.push(path)
    return found.sort()
  }

  bytesOf(path: string): Uint8Array {
    const file = this.file(path)
    const bytes = new Uint8Array(file.size)
    file.read(bytes, 0)
    return bytes
  }

  *durable(prefixes: readonly string[]): Generator<readonly [path: string, bytes: Uint8Array]> {
    for (const [path, node] of this.tree.durableNodes()) {
      if (node.kind !== 'file' || !prefixes.some((prefix) => path.startsWith(prefix))) continue
      yield [path, node.durable()]
    }
  }

  flipBit(path: string, byte: number, bit: number): void {
    this.file(path).flipBit(byte, bit)
  }

  private file(path: string): SimFile {
    const node = this.tree.find(path)
    assert(node?.kind === 'file', `${path} is a file on the simulated disk`)
    return node
  }
}

function never(): Promise<never> {
  return new Promise(() => undefined)
}

/** Nearly all survives, nearly nothing, or about half: of many things, each with one chance alike, no other mix is seen. */
function lucky(chance: Prng): Luck {
  const shares = [0.02, 0.5, 0.98, chance.float()]
  return { chance, share: shares[chance.below(shares.length)] as number }
}

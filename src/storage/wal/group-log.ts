// Group commit. Everything that is queued goes out in one write that is durable when it returns; while it runs, the next
// group gathers. No timer: under load the disk sets the pace, and a lone record waits for nothing.
//
//   append ──> queue ──commit──> [ group g: write + sync ] ──> synced(), waiters ──> queue empty? ── for a while ──> mark
//                ^                        |                            |  no
//                └── appends meanwhile ───┘                            └──> group g+1 at once
//
// What must hold, and where:
//   - the first byte of group g+1 is written after the sync of g returned: `run` awaits the write, so at a power cut only one
//     group can be torn (recovery relies on it);
//   - a mark is written over by the next group, and never at the same time as it: `run` awaits `marking`;
//   - nothing is reported after a failure, and nothing is tried again: `fail` is final.

import { assert } from '../../base/assert.ts'
import { EastGuardError } from '../../base/errors.ts'
import { WAL_GROUP_BYTES_MAX, WAL_GROUP_ENTRIES_MAX } from '../../model/limits.ts'
import type { Clock } from '../../ports/clock.ts'
import { type IdleFile, LogFiles, type LogFilesOptions } from './files.ts'
import { GroupEncoder, type RecordShape } from './group-encoder.ts'
import { FRAME_BYTES, GROUP_BYTES, type GroupHeader, putGroup } from './record.ts'

/** When no group has followed for so long, a mark says that the last one was synced: damage to it is known as such. */
const MARK_AFTER_MS = 20
/** Room for control records when there is none for entries; less where files are small. */
const CONTROL_BYTES = 256 * 1024
/** A larger group is one record whose tail goes by reference. */
const SLAB_BYTES_MAX = WAL_GROUP_BYTES_MAX + GROUP_BYTES

export type GroupLogOptions = LogFilesOptions

export interface GroupLogHooks<Target, Item> extends RecordShape<Target, Item> {
  /** A record joins the group that is being gathered, in LSN order. */
  gathered(kind: number, target: Target, item: Item): void
  /** The group that was gathered is synced. */
  synced(): void
}

interface Waiter {
  readonly lsn: number
  resolve(): void
  reject(error: Error): void
}

export class GroupLog<Target, Item> {
  private readonly options: GroupLogOptions
  private readonly hooks: GroupLogHooks<Target, Item>
  private readonly files: LogFiles
  private readonly encoder: GroupEncoder<Target, Item>
  private readonly clock: Clock
  // The queue: parallel arrays and a head, so that a record costs no object of its own.
  private kinds: number[] = []
  private targets: Target[] = []
  private items: Item[] = []
  private head = 0
  private waiters: Waiter[] = []
  private queuedBytes = 0
  private next: number
  /** Records below it are synced. */
  private syncedEnd: number
  private group = 1
  private floor: number
  /** The floor that the last synced header tells. */
  private floorOnDisk: number
  private running: Promise<void> | undefined
  private marking: Promise<void> | undefined
  /** When what is being written was begun. */
  private busySince: number | undefined
  private failure: Error | undefined
  /** No space for the next file. */
  private stalled = false
  private markTimer = false
  /** When the last group was synced, while nothing runs. */
  private idleSinceMs = 0
  /** Somebody was told that there is no room while others were queued; told again when a group has left. */
  private refused = false
  private closing = false

  constructor(
    options: GroupLogOptions,
    hooks: GroupLogHooks<Target, Item>,
    firstLsn: number,
    used: readonly IdleFile[],
    spares: readonly IdleFile[],
  ) {
    this.options = options
    this.clock = options.clock
    this.hooks = hooks
    this.encoder = new GroupEncoder(hooks)
    this.files = new LogFiles(
      { ...options, onSpace: () => this.space(), onFailed: (error) => this.fail(error) },
      used,
      spares,
    )
    this.next = firstLsn
    this.syncedEnd = firstLsn
    this.floor = firstLsn
    this.floorOnDisk = firstLsn
  }

  get nextLsn(): number {
    return this.next
  }
  get filesInUse(): number {
    return this.files.inUse
  }
  get oldestFileEndLsn(): number {
    return this.files.oldestEndLsn ?? this.next
  }
  get bytesQueued(): number {
    return this.queuedBytes
  }
  get syncAgeMs(): number {
    return this.busySince === undefined ? 0 : this.clock.monotonic() - this.busySince
  }
  get blocked(): boolean {
    return this.files.blocked
  }

  /** Begins the first file; false when the disk has no space for it. */
  async begin(): Promise<boolean> {
    return this.files.rotate(this.next, this.floor, 0)
  }

  hasRoom(payloadBytes: number, records: number = 1): boolean {
    const fileBytes = this.options.fileBytes
    const reserve = Math.min(CONTROL_BYTES, fileBytes >> 4)
    const need = payloadBytes + records * FRAME_BYTES + GROUP_BYTES
    const spare = this.files.spareBytes
    // A record that fits no file gets a larger one; whether the disk has space for that shows then.
    if (need > fileBytes >> 1) return spare > 0 && !this.files.blocked
    const fits = this.queuedBytes + need + reserve <= Math.max(this.files.remaining, spare)
    if (!fits) this.refused = true
    return fits
  }

  append(kind: number, target: Target, item: Item): number {
    assert(!this.closing, 'nothing is appended to a closed log')
    this.kinds.push(kind)
    this.targets.push(target)
    this.items.push(item)
    this.queuedBytes += this.encoder.size(kind, item)
    return this.next++
  }

  commit(): void {
    if (this.running !== undefined || this.failure !== undefined || this.stalled) return
    if (this.head === this.items.length) return
    this.running = this.run()
  }

  /** Resolves when all records up to `lsn` are synced; rejects when the log has failed. */
  whenSynced(lsn: number): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure)
    if (lsn < this.syncedEnd) return Promise.resolve()
    return new Promise((resolve, reject) => {
      // In LSN order: callers wait for what was appended last.
      assert((this.waiters.at(-1)?.lsn ?? 0) <= lsn, 'waiters come in LSN order')
      this.waiters.push({ lsn, resolve, reject })
    })
  }

  releaseBelow(lsn: number): void {
    assert(lsn <= this.next, 'what was not appended cannot be released')
    if (lsn <= this.floor || this.failure !== undefined) return
    this.floor = lsn
    const frees = (this.files.oldestEndLsn ?? Number.MAX_SAFE_INTEGER) <= lsn
    // With a group on its way or a queue, the next header tells the new floor. Otherwise a mark has to, before
    // a file may go: recovery takes missing records above the floor for damage.
    if (frees && this.running === undefined && !this.closing) this.running = this.run()
  }

  private async run(): Promise<void> {
    this.busySince = this.clock.monotonic()
    try {
      await this.marking
      do {
        while (this.head < this.items.length && !this.stalled) await this.commitGroup()
        if (this.pendingFloor()) await this.writeFloor()
      } while (this.head < this.items.length && !this.stalled)
      this.idleSinceMs = this.clock.monotonic()
      this.markAfter(MARK_AFTER_MS)
    } catch (error) {
      this.fail(error as Error)
    } finally {
      this.running = undefined
      this.busySince = undefined
    }
  }

  private async commitGroup(): Promise<void> {
    const size = this.encoder.size(this.kinds[this.head] as number, this.items[this.head] as Item)
    const least = GROUP_BYTES + size
    if (least > this.files.remaining) {
      if (!(await this.files.rotate(this.firstQueuedLsn, this.floor, least))) {
        // The records keep their numbers and wait for `space`.
        this.stalled = true
        return
      }
    }
    const floor = this.floor
    const at = this.files.position
    const { buffers, endLsn, bytes } = this.gather()
    this.files.position = at + bytes
    await this.files.durable.write(buffers, at)
    if (this.failure !== undefined) throw this.failure
    this.complete(endLsn, floor)
  }

  private get firstQueuedLsn(): number {
    return this.next - (this.items.length - this.head)
  }

  private gather(): { buffers: readonly Uint8Array[]; endLsn: number; bytes: number } {
    const { kinds, targets, items, encoder } = this
    const salt = this.files.salt
    const firstLsn = this.firstQueuedLsn
    const limit = Math.min(this.files.remaining, WAL_GROUP_BYTES_MAX)
    const most = Math.min(items.length, this.head + WAL_GROUP_ENTRIES_MAX)
    let bytes = GROUP_BYTES
    let end = this.head
    for (; end < most; end++) {
      const size = encoder.size(kinds[end] as number, items[end] as Item)
      if (bytes + size > limit && end > this.head) break
      bytes += size
    }
    encoder.begin(Math.min(bytes, SLAB_BYTES_MAX), firstLsn, this.header(end - this.head), salt)
    let lsn = firstLsn
    for (let i = this.head; i < end; i++) {
      const kind = kinds[i] as number
      const target = targets[i] as Target
      const item = items[i] as Item
      encoder.add(kind, target, item, lsn++, salt)
      this.hooks.gathered(kind, target, item)
    }
    this.dropFromQueue(end)
    this.queuedBytes -= bytes - GROUP_BYTES
    return { buffers: encoder.finish(), endLsn: lsn, bytes }
  }

  private header(records: number): GroupHeader {
    return {
      group: this.group,
      syncedLsn: this.syncedEnd - 1,
      floorLsn: this.floor,
      records,
    }
  }

  private dropFromQueue(end: number): void {
    if (end === this.items.length) {
      this.kinds = []
      this.targets = []
      this.items = []
      this.head = 0
      return
    }
    this.head = end
    // A queue that never runs empty must not keep what has gone.
    if (end > WAL_GROUP_ENTRIES_MAX) {
      this.kinds = this.kinds.slice(end)
      this.targets = this.targets.slice(end)
      this.items = this.items.slice(end)
      this.head = 0
    }
  }

  private complete(endLsn: number, floor: number): void {
    this.group++
    this.syncedEnd = endLsn
    this.busySince = this.clock.monotonic()
    this.floorReached(floor)
    this.hooks.synced()
    let waiter = this.waiters[0]
    while (waiter !== undefined && waiter.lsn < endLsn) {
      this.waiters.shift()
      waiter.resolve()
      waiter = this.waiters[0]
    }
    if (this.refused) {
      this.refused = false
      this.options.onSpace()
    }
  }

  private floorReached(floor: number): void {
    if (floor === this.floorOnDisk) return
    this.floorOnDisk = floor
    this.files.release(floor)
  }

  private pendingFloor(): boolean {
    const oldest = this.files.oldestEndLsn
    if (oldest === undefined || oldest <= this.floorOnDisk || oldest > this.floor) return false
    return this.files.marksLeft > 1
  }

  private markBytes(): Uint8Array {
    const bytes = new Uint8Array(GROUP_BYTES)
    putGroup(bytes, 0, this.syncedEnd, this.header(0), this.files.salt)
    return bytes
  }

  /** A mark that must be on disk, and stay there: files go because of its floor, so no torn group may take its place. */
  private async writeFloor(): Promise<void> {
    const floor = this.floor
    const at = this.files.position
    this.files.position = at + GROUP_BYTES
    await this.files.durable.write([this.markBytes()], at)
    this.floorReached(floor)
  }

  private markAfter(ms: number): void {
    if (this.markTimer) return
    this.markTimer = true
    this.clock.after(ms, () => {
      this.markTimer = false
      if (this.running !== undefined || this.closing || this.failure !== undefined) return
      const leftMs = this.idleSinceMs + MARK_AFTER_MS - this.clock.monotonic()
      if (leftMs > 0) this.markAfter(leftMs)
      else this.marking = this.mark()
    })
  }

  private async mark(): Promise<void> {
    try {
      await this.files.durable.write([this.markBytes()], this.files.position)
    } catch (error) {
      this.fail(error as Error)
    }
  }

  private space(): void {
    this.stalled = false
    this.commit()
    this.options.onSpace()
  }

  private fail(error: Error): void {
    if (this.failure !== undefined) return
    this.failure = error
    const waiters = this.waiters
    this.waiters = []
    for (const waiter of waiters) waiter.reject(error)
    this.options.onFailed(error)
  }

  /** Resolves when all that was queued is synced, or cannot be: the log has failed, or there is no space. */
  async drain(): Promise<void> {
    this.commit()
    while (this.running !== undefined) await this.running
  }

  /** Resolves when the files ahead are prepared. */
  settled(): Promise<void> {
    return this.files.settled()
  }

  async close(): Promise<void> {
    await this.drain()
    this.closing = true
    if (this.stalled)
      this.fail(
        new EastGuardError('STORAGE_FULL', 'the log was closed with no space for its last records'),
      )
    await this.marking
    if (this.failure === undefined) await this.mark()
    await this.files.close()
    if (this.failure !== undefined) throw this.failure
  }
}

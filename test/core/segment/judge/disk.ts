// A broker's disk: one WAL for all its segments, written in groups, one group after the other is synced.
//
//   queue ──group──> being written ──sync──> durable, callbacks in LSN order
//                        │ crash
//                        └──> any beginning of it stays readable; recovery makes that durable, or another crash takes some of it

import type { World } from './world.ts'

/** One batch of one record: the `sequence`th of its partition's one producer, and so at that offset. */
export interface Item {
  readonly partition: number
  readonly sequence: number
  /** As the leader knew it when it was written. */
  readonly highWatermark: number
}

export interface SegmentOnDisk {
  /** All durable. */
  readonly items: Item[]
  sealedAt: number | undefined
  /** Damage can touch it, until it has been copied anew. */
  unsure: string | undefined
}

export interface Staged {
  /** The successor. */
  readonly segment: number
  readonly token: string
  /** The start of the broker that stored it. */
  readonly boot: number
  /** Next offset of each partition at the predecessor's end. */
  readonly next: readonly number[]
  readonly tailFrom: number
  readonly tail: readonly Item[]
}

type LogRecord =
  | { readonly kind: 'entry'; readonly segment: number; readonly item: Item }
  | { readonly kind: 'fence'; readonly segment: number }
  | { readonly kind: 'staged'; readonly staged: Staged }

interface Queued {
  readonly record: LogRecord
  readonly done: () => void
}

export class Disk {
  readonly segments: Map<number, SegmentOnDisk> = new Map()
  /** By token. */
  readonly staged: Map<string, Staged> = new Map()
  lost = false
  /** No sync ends before. */
  stuckUntil = 0
  private readonly world: World
  private queue: Queued[] = []
  private group: Queued[] | undefined
  private groupSince = 0
  /** Readable after a crash, and not durable. */
  private unsynced: LogRecord[] = []
  /** What of it a start has found. */
  private readBack: LogRecord[] = []
  private generation = 0
  /** How long whoever waits for a sync still stands still. */
  private readonly pausedMs: () => number

  constructor(world: World, pausedMs: () => number) {
    this.world = world
    this.pausedMs = pausedMs
  }

  /** How long the oldest sync takes already. */
  oldestSyncMs(): number {
    return this.group === undefined ? 0 : this.world.clock.monotonic() - this.groupSince
  }

  /** Nothing of it waits for its sync. */
  isQuiet(segment: number): boolean {
    return ![...(this.group ?? []), ...this.queue].some(({ record }) => {
      return record.kind !== 'staged' && record.segment === segment
    })
  }

  write(record: LogRecord, done: () => void): void {
    this.queue.push({ record, done })
    if (this.group === undefined) this.writeGroup()
  }

  segment(segment: number): SegmentOnDisk {
    let found = this.segments.get(segment)
    if (found === undefined) {
      found = { items: [], sealedAt: undefined, unsure: undefined }
      this.segments.set(segment, found)
    }
    return found
  }

  /** The process is gone; a part of what was being written may be there, or of what recovery has not made durable again. */
  crash(): void {
    const written = this.group?.map(({ record }) => record) ?? []
    const all = [...this.unsynced, ...written]
    for (const record of this.readBack.toReversed()) this.takeBack(record)
    this.readBack = []
    this.unsynced = all.slice(0, this.world.chance.below(all.length + 1))
    this.queue = []
    this.group = undefined
    this.generation++
  }

  /** What a start finds; it is not durable yet. */
  reads(): void {
    this.readBack = this.unsynced.filter((record) => this.store(record))
  }

  recovered(): void {
    this.unsynced = []
    this.readBack = []
  }

  private takeBack(record: LogRecord): void {
    if (record.kind === 'staged') this.staged.delete(record.staged.token)
    if (record.kind === 'entry') this.segment(record.segment).items.pop()
  }

  /** Its unreadable entries are gone for good; whatever else is there may be wrong. */
  damage(segment: number, readable: number): void {
    for (const one of this.segments.values()) one.unsure = 'the WAL is damaged'
    const hit = this.segment(segment)
    hit.items.length = Math.min(hit.items.length, readable)
    this.unsynced = []
  }

  private writeGroup(): void {
    if (this.queue.length === 0) return
    const group = this.queue
    const { generation, world } = this
    this.group = group
    this.queue = []
    this.groupSince = world.clock.monotonic()
    world.later(world.syncMs(this), () => this.synced(group, generation))
  }

  private synced(group: readonly Queued[], generation: number): void {
    if (generation !== this.generation) return
    const pausedMs = this.pausedMs()
    if (pausedMs > 0) return this.world.later(pausedMs, () => this.synced(group, generation))
    for (const { record, done } of group) {
      this.store(record)
      done()
      if (generation !== this.generation) return
    }
    this.group = undefined
    this.writeGroup()
  }

  /** False: nobody needs it any more. */
  private store(record: LogRecord): boolean {
    if (record.kind === 'staged') this.staged.set(record.staged.token, record.staged)
    // Fences need no place here: a start fences whatever was open.
    if (record.kind === 'entry') {
      const { items, sealedAt } = this.segment(record.segment)
      if (sealedAt !== undefined && items.length >= sealedAt) return false
      items.push(record.item)
    }
    return true
  }
}

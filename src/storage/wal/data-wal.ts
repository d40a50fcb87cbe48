// The data WAL: entries of all segments, and control records, in one group log. An entry's payload is its envelope,
// written into the slab, and its batch, as it came. Per group each touched segment is told once how far it is durable.

import { ENVELOPE_BYTES, type Entry, putEnvelope } from '../../model/entry.ts'
import type { LogOptions } from './files.ts'
import type { GroupLog } from './group-log.ts'
import { beginGroupLog } from './record-log.ts'
import type { RecoveredLog } from './recover.ts'
import { KIND_ENTRY, type QueuedRecord, type Wal, type WalTarget } from './types.ts'

type Target = WalTarget | undefined
/** An entry with its target, or a control record's payload without one. */
type Item = Entry | Uint8Array

export interface DataWal extends Wal {
  /** True while the disk gives no space for the next file. */
  readonly blocked: boolean
  /** Resolves when everything appended so far is synced; rejects when the log has failed. */
  sync(): Promise<void>
  /** Resolves when everything appended so far is synced, or cannot be. */
  drain(): Promise<void>
}

export async function beginDataWal(found: RecoveredLog, options: LogOptions): Promise<DataWal> {
  const touched = new TouchedTargets()
  const log = await beginGroupLog<Target, Item>(found, options, {
    headBytes: (kind) => (kind === KIND_ENTRY ? ENVELOPE_BYTES : 0),
    putHead(into, at, _kind, target, item) {
      if (target !== undefined) putEnvelope(into, at, target.place, item as Entry)
    },
    tail: (kind, item) => (kind === KIND_ENTRY ? (item as Entry).batch : (item as Uint8Array)),
    gathered(_kind, target, item) {
      if (target !== undefined) touched.add(target, (item as Entry).entryNumber + 1)
    },
    synced: () => touched.report(),
  })
  return new GroupedWal(log)
}

class GroupedWal implements DataWal {
  private readonly log: GroupLog<Target, Item>

  constructor(log: GroupLog<Target, Item>) {
    this.log = log
  }

  append(target: WalTarget, entry: Entry): number {
    return this.log.append(KIND_ENTRY, target, entry)
  }

  appendRecord(kind: number, payload: Uint8Array): QueuedRecord {
    const lsn = this.log.append(kind, undefined, payload)
    this.log.commit()
    return { lsn, synced: this.log.whenSynced(lsn) }
  }

  commit(): void {
    this.log.commit()
  }
  sync(): Promise<void> {
    this.log.commit()
    return this.log.whenSynced(this.log.nextLsn - 1)
  }
  drain(): Promise<void> {
    return this.log.drain()
  }
  releaseBelow(lsn: number): void {
    this.log.releaseBelow(lsn)
  }
  hasRoom(batchBytes: number): boolean {
    return this.log.hasRoom(batchBytes + ENVELOPE_BYTES)
  }
  get nextLsn(): number {
    return this.log.nextLsn
  }
  get filesInUse(): number {
    return this.log.filesInUse
  }
  get oldestFileEndLsn(): number {
    return this.log.oldestFileEndLsn
  }
  get syncAgeMs(): number {
    return this.log.syncAgeMs
  }
  get bytesQueued(): number {
    return this.log.bytesQueued
  }
  get blocked(): boolean {
    return this.log.blocked
  }
  close(): Promise<void> {
    return this.log.close()
  }
}

/** The targets of the group on its way, in order of first LSN, and how far each will be durable. */
class TouchedTargets {
  private targets: WalTarget[] = []
  private ends: number[] = []

  add(target: WalTarget, endEntry: number): void {
    if (this.targets[target.walSlot] !== target) {
      target.walSlot = this.targets.length
      this.targets.push(target)
    }
    this.ends[target.walSlot] = endEntry
  }

  report(): void {
    const targets = this.targets
    const ends = this.ends
    this.targets = []
    this.ends = []
    for (let i = 0; i < targets.length; i++) targets[i]?.walDurable(ends[i] as number)
  }
}

// Writes node.json, one write after the other: two at once would share one temporary file, and the older could come last.
// What changes while a write is under way goes with the next, all of it together.

import type { Disk } from '../../ports/disk.ts'
import { type NodeRecord, writeNodeFile } from './node-file.ts'

export class RecordWriter {
  private readonly disk: Disk
  private newest: NodeRecord
  private written: NodeRecord
  private underWay: { readonly record: NodeRecord; readonly ended: Promise<void> } | undefined
  private next: Promise<void> | undefined

  /** `record` is what stands in the file. */
  constructor(disk: Disk, record: NodeRecord) {
    this.disk = disk
    this.newest = record
    this.written = record
  }

  /** Durable when it resolves. When it rejects, the change is tried again with the next. */
  change(change: Partial<NodeRecord>): Promise<void> {
    this.newest = { ...this.newest, ...change }
    return this.flush()
  }

  /** Resolves when all changes are durable. */
  flush(): Promise<void> {
    if (this.underWay?.record === this.newest) return this.underWay.ended
    if (this.underWay === undefined && this.written === this.newest) return Promise.resolve()
    const before = this.underWay?.ended.catch(() => undefined) ?? Promise.resolve()
    this.next ??= before.then(() => this.write())
    return this.next
  }

  /** Resolves when nothing is written any more, if nothing changes meanwhile. */
  async idle(): Promise<void> {
    await (this.next ?? this.underWay?.ended)?.catch(() => undefined)
  }

  private write(): Promise<void> {
    const record = this.newest
    this.next = undefined
    const ended = writeNodeFile(this.disk, record).then(
      () => {
        this.written = record
        this.underWay = undefined
      },
      (error: unknown) => {
        this.underWay = undefined
        throw error
      },
    )
    this.underWay = { record, ended }
    return ended
  }
}

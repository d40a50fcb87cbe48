// Range states on disk: one checked file per staged state, under its token, beside the segment that it begins.
//
//   topics/<name>-<id>/range-<n>/<20-digit segment>.<token>.state

import { EastGuardError } from '../base/errors.ts'
import type { TopicId } from '../model/ids.ts'
import type { SegmentKey } from '../model/segment-key.ts'
import type { Disk } from '../ports/disk.ts'
import { directoryOf, readChecked, writeChecked } from './checked-file.ts'
import type { DurableDirs } from './durable-dirs.ts'
import { listOrNothing } from './recovery/on-disk.ts'
import { parseSegmentFile, rangeDir, segmentBase } from './segment/paths.ts'
import type { Catalog } from './types.ts'

const EXTENSION = '.state'

export function statePath(topicName: string, key: SegmentKey, token: string): string {
  return `${segmentBase(topicName, key)}.${token}${EXTENSION}`
}

export class States {
  private readonly disk: Disk
  private readonly catalog: Catalog
  private readonly durableDirs: DurableDirs
  /** Of each topic, the states that are being written. */
  private readonly writing = new Map<TopicId, Set<Promise<void>>>()

  constructor(disk: Disk, catalog: Catalog, durableDirs: DurableDirs) {
    this.disk = disk
    this.catalog = catalog
    this.durableDirs = durableDirs
  }

  private nameOf(key: SegmentKey): string {
    const name = this.catalog.topicName(key.topicId)
    if (name === undefined) {
      throw new EastGuardError('UNKNOWN_TOPIC', `the topic ${key.topicId} was deleted`)
    }
    return name
  }

  async stage(key: SegmentKey, token: string, state: Uint8Array): Promise<void> {
    const { topicId } = key
    const written = this.write(topicId, statePath(this.nameOf(key), key, token), state)
    const running = this.writing.get(topicId) ?? new Set()
    this.writing.set(topicId, running.add(written))
    try {
      await written
    } finally {
      running.delete(written)
      if (running.size === 0) this.writing.delete(topicId)
    }
  }

  private async write(topicId: TopicId, path: string, state: Uint8Array): Promise<void> {
    const dir = directoryOf(path)
    if (!this.durableDirs.has(topicId, dir)) {
      await this.disk.makeDir(dir)
      await this.durableDirs.sync(topicId, dir)
    }
    await writeChecked(this.disk, path, state)
  }

  /** Nothing of the topic is being written any more, and as it was deleted nothing will be. */
  async settled(topicId: TopicId): Promise<void> {
    const running = this.writing.get(topicId)
    if (running !== undefined) await Promise.allSettled(running)
  }

  /** Rejects with DAMAGED when the file is not what was written. */
  load(key: SegmentKey, token: string): Promise<Uint8Array | undefined> {
    return readChecked(this.disk, statePath(this.nameOf(key), key, token))
  }

  /**
   * Removes the segment's states but the one under `token`, and those of earlier segments: the range needs no more than the
   * state at the start of its open segment.
   */
  async keep(key: SegmentKey, token: string): Promise<void> {
    const dir = rangeDir(this.nameOf(key), key)
    let removed = false
    for (const file of await listOrNothing(this.disk, dir)) {
      const part = parseSegmentFile(file.name)
      if (part === undefined || !part.extension.endsWith(EXTENSION)) continue
      if (part.segment > key.segment) continue
      if (part.segment === key.segment && part.extension === `${token}${EXTENSION}`) continue
      await this.disk.remove(`${dir}/${file.name}`)
      removed = true
    }
    if (removed) await this.disk.syncDir(dir)
  }
}

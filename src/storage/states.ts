// Range states on disk: one checked file per staged state, under its token, beside the segment that it begins.
//
//   topics/<name>-<id>/range-<n>/<20-digit segment>.<token>.state

import { EastGuardError } from '../base/errors.ts'
import type { Disk } from '../ports/disk.ts'
import { directoryOf, readChecked, writeChecked } from './checked-file.ts'
import { listOrNothing } from './recovery/on-disk.ts'
import { parseSegmentFile, rangeDir, segmentBase } from './segment/paths.ts'
import type { Catalog, SegmentKey } from './types.ts'

const EXTENSION = '.state'

export function statePath(topicName: string, key: SegmentKey, token: string): string {
  return `${segmentBase(topicName, key)}.${token}${EXTENSION}`
}

export class States {
  private readonly disk: Disk
  private readonly catalog: Catalog
  /** Directories whose entry in their parent is durable. */
  private readonly durableDirs = new Set<string>()

  constructor(disk: Disk, catalog: Catalog) {
    this.disk = disk
    this.catalog = catalog
  }

  private nameOf(key: SegmentKey): string {
    const name = this.catalog.topicName(key.topicId)
    if (name === undefined) {
      throw new EastGuardError('UNKNOWN_TOPIC', `the topic ${key.topicId} was deleted`)
    }
    return name
  }

  async stage(key: SegmentKey, token: string, state: Uint8Array): Promise<void> {
    const path = statePath(this.nameOf(key), key, token)
    await this.makeDurableDir(directoryOf(path))
    await writeChecked(this.disk, path, state)
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

  private async makeDurableDir(dir: string): Promise<void> {
    if (this.durableDirs.has(dir)) return
    await this.disk.makeDir(dir)
    for (let path = dir; path !== '.'; ) {
      path = directoryOf(path)
      await this.disk.syncDir(path)
    }
    this.durableDirs.add(dir)
  }
}

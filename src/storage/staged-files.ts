// What a broker keeps for a roll until it is known what became of it: checked files under a token, beside the segments that
// they belong to. The topic's name is asked for at each use, for its directory bears it.
//
// When a broker fails all ranges that it had a part in are rolled at once, and each has its files. They are written and removed a
// few at a time: the disk has few threads, and behind hundreds of files the log would stand still, and be taken for stuck.

import { EastGuardError } from '../base/errors.ts'
import { Lanes } from '../base/lanes.ts'
import type { TopicId } from '../model/ids.ts'
import type { SegmentKey } from '../model/segment-key.ts'
import type { Disk } from '../ports/disk.ts'
import { directoryOf, readChecked, writeChecked } from './checked-file.ts'
import type { DurableDirs } from './durable-dirs.ts'
import { rangeDir, segmentBase } from './segment/paths.ts'
import type { Catalog } from './types.ts'

/** Written or removed at a time. */
const JOBS_MAX = 4

export class StagedFiles {
  readonly disk: Disk
  private readonly catalog: Catalog
  private readonly durableDirs: DurableDirs
  /** Of each topic, the files that are being written. */
  private readonly writing = new Map<TopicId, Set<Promise<void>>>()
  private readonly lanes = new Lanes(JOBS_MAX)

  constructor(disk: Disk, catalog: Catalog, durableDirs: DurableDirs) {
    this.disk = disk
    this.catalog = catalog
    this.durableDirs = durableDirs
  }

  path(key: SegmentKey, token: string, extension: string): string {
    return stagedPath(this.nameOf(key), key, token, extension)
  }

  dir(key: SegmentKey): string {
    return rangeDir(this.nameOf(key), key)
  }

  private nameOf(key: SegmentKey): string {
    const name = this.catalog.topicName(key.topicId)
    if (name === undefined) {
      throw new EastGuardError('UNKNOWN_TOPIC', `the topic ${key.topicId} was deleted`)
    }
    return name
  }

  /** Durable when it resolves. */
  async write({ topicId }: SegmentKey, path: string, content: Uint8Array): Promise<void> {
    const written = this.lanes.run(() => this.writeIn(topicId, path, content))
    const running = this.writing.get(topicId) ?? new Set()
    this.writing.set(topicId, running.add(written))
    try {
      await written
    } finally {
      running.delete(written)
      if (running.size === 0) this.writing.delete(topicId)
    }
  }

  private async writeIn(topicId: TopicId, path: string, content: Uint8Array): Promise<void> {
    const dir = directoryOf(path)
    if (!this.durableDirs.has(topicId, dir)) {
      await this.disk.makeDir(dir)
      await this.durableDirs.sync(topicId, dir)
    }
    await writeChecked(this.disk, path, content)
  }

  /** Removals, behind all that is to be written: nobody waits for them. */
  async clearing(remove: () => Promise<void>): Promise<void> {
    await this.lanes.run(remove, 'calm')
  }

  /** Nothing of the topic is being written any more, and as it was deleted nothing will be. */
  async settled(topicId: TopicId): Promise<void> {
    const running = this.writing.get(topicId)
    if (running !== undefined) await Promise.allSettled(running)
  }

  /** Rejects with DAMAGED when the file is not what was written. */
  read(path: string): Promise<Uint8Array | undefined> {
    return readChecked(this.disk, path)
  }
}

export function stagedPath(
  topicName: string,
  key: SegmentKey,
  token: string,
  extension: string,
): string {
  return `${segmentBase(topicName, key)}.${token}${extension}`
}

// Directories of topics whose names are known to be durable, each in the one above it, so that only the first file of a
// range pays for the syncs. Kept by topic, and let go with it: topics come and go for as long as a broker runs.

import type { TopicId } from '../model/ids.ts'
import type { Disk } from '../ports/disk.ts'
import { directoryOf } from './checked-file.ts'
import { TOPICS_DIR } from './segment/paths.ts'

export class DurableDirs {
  private readonly disk: Disk
  private readonly byTopic = new Map<TopicId, Set<string>>()
  /** The one directory that all topics share. */
  private topicsDurable = false

  constructor(disk: Disk) {
    this.disk = disk
  }

  has(topicId: TopicId, dir: string): boolean {
    if (dir === TOPICS_DIR) return this.topicsDurable
    return this.byTopic.get(topicId)?.has(dir) === true
  }

  /** `dir`, which exists, is found again after a power cut when it resolves. */
  async sync(topicId: TopicId, dir: string): Promise<void> {
    const synced: string[] = []
    for (let path = dir; path !== '.' && !this.has(topicId, path); ) {
      synced.push(path)
      path = directoryOf(path)
      await this.disk.syncDir(path)
    }
    // Only now: of a walk that failed in the middle nothing counts.
    const known = this.byTopic.get(topicId) ?? new Set()
    for (const path of synced) if (path !== TOPICS_DIR) known.add(path)
    this.byTopic.set(topicId, known)
    this.topicsDurable = true
  }

  forget(topicId: TopicId): void {
    this.byTopic.delete(topicId)
  }
}

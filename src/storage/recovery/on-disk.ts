// Which segments have files: a walk over topics/<name>-<id>/range-<n>/. Anything that does not look like ours is passed
// over and left alone.

import type { TopicId } from '../../model/ids.ts'
import { keyText, type SegmentKey } from '../../model/segment-key.ts'
import { type DirEntry, type Disk, DiskError } from '../../ports/disk.ts'
import { parseRangeDir, parseSegmentFile, parseTopicDir, TOPICS_DIR } from '../segment/paths.ts'

export interface SegmentOnDisk {
  readonly key: SegmentKey
  /** As the directory has it. */
  readonly topicName: string
  /** Entries of it are kept beside it, behind a gap (segment/salvage.ts). */
  readonly salvaged: boolean
}

/** Files of a segment that hold its entries; range states and tails do not count. */
export const DATA_EXTENSIONS: readonly string[] = ['log', 'index', 'cut', 'salvage']

/** Every topic that has a directory, whatever is in it. */
export async function listTopics(disk: Disk): Promise<readonly TopicId[]> {
  const ids: TopicId[] = []
  for (const { name, kind } of await listOrNothing(disk, TOPICS_DIR)) {
    const parsed = kind === 'directory' ? parseTopicDir(name) : undefined
    if (parsed !== undefined) ids.push(parsed.id)
  }
  return ids
}

export async function listSegments(disk: Disk): Promise<ReadonlyMap<string, SegmentOnDisk>> {
  const found = new Map<string, SegmentOnDisk>()
  for await (const { key, topicName, extension } of segmentFiles(disk)) {
    if (!DATA_EXTENSIONS.includes(extension)) continue
    const text = keyText(key)
    const salvaged = extension === 'salvage' || found.get(text)?.salvaged === true
    found.set(text, { key, topicName, salvaged })
  }
  return found
}

export interface SegmentFileOnDisk {
  readonly key: SegmentKey
  /** As the directory has it. */
  readonly topicName: string
  readonly extension: string
}

/** Every file in a range's directory that bears a segment number. */
export async function* segmentFiles(disk: Disk): AsyncGenerator<SegmentFileOnDisk> {
  for (const topic of await listOrNothing(disk, TOPICS_DIR)) {
    const parsed = topic.kind === 'directory' ? parseTopicDir(topic.name) : undefined
    if (parsed === undefined) continue
    for (const dir of await listOrNothing(disk, `${TOPICS_DIR}/${topic.name}`)) {
      const range = dir.kind === 'directory' ? parseRangeDir(dir.name) : undefined
      if (range === undefined) continue
      for (const file of await listOrNothing(disk, `${TOPICS_DIR}/${topic.name}/${dir.name}`)) {
        const part = parseSegmentFile(file.name)
        if (part === undefined) continue
        const key = { topicId: parsed.id, range, segment: part.segment }
        yield { key, topicName: parsed.name, extension: part.extension }
      }
    }
  }
}

export async function listOrNothing(disk: Disk, path: string): Promise<readonly DirEntry[]> {
  try {
    return await disk.list(path)
  } catch (error) {
    if (error instanceof DiskError && error.fault === 'not-found') return []
    throw error
  }
}

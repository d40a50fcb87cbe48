// Where a segment's files live, relative to the data directory:
//
//   topics/<name>-<topic id>/range-<n>/<20-digit segment>.log         the entries
//                                      <20-digit segment>.index       (partition, offset or timestamp) -> position; derived
//                                      <20-digit segment>.cut         a cut in progress (see cut.ts)
//                                      <20-digit segment>.<token>.state   range state at its start, the log store's
//                                      <20-digit segment>.<token>.tail    its last entries, kept for whoever lacks them

import { type TopicId, topicId } from '../../model/ids.ts'
import type { SegmentKey } from '../../model/segment-key.ts'

export const TOPICS_DIR = 'topics'

export function topicDir(name: string, id: TopicId): string {
  return `${TOPICS_DIR}/${name}-${id}`
}

export function rangeDir(name: string, key: SegmentKey): string {
  return `${topicDir(name, key.topicId)}/range-${key.range}`
}

/** The path without its extension. */
export function segmentBase(name: string, key: SegmentKey): string {
  return `${rangeDir(name, key)}/${String(key.segment).padStart(20, '0')}`
}

/** Name and id of a topic directory; undefined when it is none of ours. */
export function parseTopicDir(dir: string): { name: string; id: TopicId } | undefined {
  const match = /^(.{1,249})-([0-9a-f]{32})$/.exec(dir)
  if (match === null) return undefined
  return { name: match[1] as string, id: topicId(match[2] as string) }
}

export function parseRangeDir(dir: string): number | undefined {
  const match = /^range-(0|[1-9]\d{0,9})$/.exec(dir)
  return match === null ? undefined : Number(match[1])
}

/** Segment number and extension ("log", "index", "<token>.state") of a file in a range directory. */
export function parseSegmentFile(file: string): { segment: number; extension: string } | undefined {
  const match = /^(\d{20})\.(.+)$/.exec(file)
  if (match === null) return undefined
  const segment = Number(match[1])
  return Number.isSafeInteger(segment) ? { segment, extension: match[2] as string } : undefined
}

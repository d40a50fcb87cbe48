// What is past its retention goes, a whole sealed segment at a time: first DropSegments commits, which raises the log
// start offsets, then the files go. Age is counted from the moment a segment was sealed, which is when its successor
// opened: no file is read for it. Bytes are those of the topic's entries.

import { rangeByNumber } from '../../core/metadata/lookup.ts'
import type { Range, Segment, Topic } from '../../core/metadata/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { BrokerParts } from '../options.ts'

interface Drop {
  readonly range: number
  readonly belowSegment: number
}

/** What retention drops of a topic at wall-clock time `now`. */
export function dropsOf(
  topic: Topic,
  now: number,
  bytesOf: (range: number, segment: number) => number,
): readonly Drop[] {
  const below = new Map<number, number>()
  dropOld(topic, now, below)
  dropLarge(topic, bytesOf, below)
  return [...below].map(([range, belowSegment]) => ({ range, belowSegment }))
}

function dropOld(topic: Topic, now: number, below: Map<number, number>): void {
  const { retentionMs } = topic.policy
  if (retentionMs < 0) return
  for (const range of topic.ranges) {
    for (const segment of range.segments) {
      const sealedAt = sealedAtMs(topic, range, segment)
      if (sealedAt === undefined || now - sealedAt < retentionMs) break
      below.set(range.range, segment.segment + 1)
    }
  }
}

/** Undefined while the segment is open. */
function sealedAtMs(topic: Topic, range: Range, segment: Segment): number | undefined {
  if (segment.state === 'open') return undefined
  const first = range.segments[0]?.segment ?? 0
  const successor = range.segments[segment.segment - first + 1]
  if (successor !== undefined) return successor.openedAtMs
  for (const child of range.children) {
    const opened = rangeByNumber(topic, child)?.segments[0]?.openedAtMs
    if (opened !== undefined) return opened
  }
  return segment.openedAtMs
}

/** The oldest sealed segments go until the rest fits. */
function dropLarge(
  topic: Topic,
  bytesOf: (range: number, segment: number) => number,
  below: Map<number, number>,
): void {
  const { retentionBytes } = topic.policy
  if (retentionBytes < 0) return
  const sealed: { range: number; segment: number; openedAtMs: number; bytes: number }[] = []
  let total = 0
  for (const { range, segments } of topic.ranges) {
    for (const { segment, state, openedAtMs } of segments) {
      if (segment < (below.get(range) ?? 0)) continue
      const bytes = bytesOf(range, segment)
      total += bytes
      if (state === 'sealed') sealed.push({ range, segment, openedAtMs, bytes })
    }
  }
  sealed.sort((a, b) => a.openedAtMs - b.openedAtMs || a.range - b.range || a.segment - b.segment)
  for (const { range, segment, bytes } of sealed) {
    if (total <= retentionBytes) return
    total -= bytes
    below.set(range, segment + 1)
  }
}

/** Of the ranges that this broker leads. */
export async function retain(parts: BrokerParts, topic: Topic, nodeId: NodeId): Promise<number> {
  const { store, metadata, ports } = parts
  const { topicId } = topic
  const bytesOf = (range: number, segment: number): number =>
    store.find({ topicId, range, segment })?.bytes ?? 0
  let dropped = 0
  for (const { range, belowSegment } of dropsOf(topic, ports.clock.wall(), bytesOf)) {
    if (!leadsRange(topic, range, nodeId)) continue
    const result = await metadata.propose({ kind: 'DropSegments', topicId, range, belowSegment })
    // Refused: the topic is gone or changed meanwhile; the next sweep sees what is.
    if (!result.ok) continue
    dropped += result.answer.dropped.length
  }
  return dropped
}

/** Of a sealed range, whoever led it last. */
function leadsRange(topic: Topic, number: number, nodeId: NodeId): boolean {
  return rangeByNumber(topic, number)?.segments.at(-1)?.replicas[0] === nodeId
}

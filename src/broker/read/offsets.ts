// Where to begin reading: earliest, latest, or the first record at or after a timestamp. Batches say only their greatest
// timestamp, so the batch found is opened, and decompressed when it must be, to find the record.

import { segmentsOf } from '../../core/metadata/lookup.ts'
import { RecordReader, recordsSection } from '../../model/batch/decode.ts'
import { batchCodec, maxTimestamp } from '../../model/batch/header.ts'
import type { Entry } from '../../model/entry.ts'
import type { Compute } from '../../ports/compute.ts'
import type { SegmentLog } from '../../storage/types.ts'
import type { Cursor } from './cursor.ts'

export interface FoundOffset {
  /** -1: no record is that young. */
  readonly offset: number
  /** -1 where it is not known. */
  readonly timestamp: number
}

const NONE: FoundOffset = { offset: -1, timestamp: -1 }
/** What a batch may grow to when it is opened for its timestamps. */
const OPENED_BYTES_MAX = 256 * 1024 * 1024

export async function latestOffset(cursor: Cursor): Promise<FoundOffset> {
  await cursor.learnEnd()
  const offset = await cursor.highWatermark()
  const { endUnknown } = cursor
  if (endUnknown !== undefined) throw endUnknown
  return { offset, timestamp: -1 }
}

export async function earliestOffset(cursor: Cursor): Promise<FoundOffset> {
  await cursor.highWatermark()
  return { offset: cursor.logStart, timestamp: -1 }
}

export async function offsetByTime(
  compute: Compute,
  cursor: Cursor,
  timestamp: number,
): Promise<FoundOffset> {
  // Before anything is looked at: what is committed meanwhile may have been passed over.
  await cursor.learnEnd()
  const known = await cursor.highWatermark()
  const { topic } = cursor.runtime
  for (const { range, segment, endOffset } of segmentsOf(topic, cursor.partition)) {
    // Which may rise while others are searched.
    if (endOffset !== undefined && endOffset <= cursor.logStart) continue
    const log = cursor.logOf(range, segment)
    if (log === undefined) continue
    try {
      const found = await firstInSegment(compute, cursor, log, timestamp)
      if (found !== undefined) return found
    } catch (error) {
      const why = cursor.unreadable(log, error)
      if (why !== undefined) throw why
      return offsetByTime(compute, cursor, timestamp)
    }
  }
  // Who has all that is old need not lead: the first record so young comes no sooner than what is known here ends. To be sent
  // to the leader, which may lack what is old, would be to be sent in a circle.
  return cursor.endUnknown === undefined ? NONE : { offset: known, timestamp: -1 }
}

async function firstInSegment(
  compute: Compute,
  { partition, logStart }: Cursor,
  log: SegmentLog,
  timestamp: number,
): Promise<FoundOffset | undefined> {
  let entry = await log.readByTime(partition, timestamp)
  while (entry !== undefined) {
    const found = await recordByTime(compute, entry, timestamp, logStart)
    if (found !== undefined) return found
    // Its matching records lie before the log start, or its header promised a timestamp that no record has.
    const next = await log.read(partition, entry.baseOffset + entry.recordCount, 1)
    entry = next.find((candidate) => maxTimestamp(candidate.batch) >= timestamp)
    if (entry === undefined && next.length > 0) entry = next[0]
  }
  return undefined
}

async function recordByTime(
  compute: Compute,
  entry: Entry,
  timestamp: number,
  logStart: number,
): Promise<FoundOffset | undefined> {
  const { batch } = entry
  const codec = batchCodec(batch)
  if (codec === undefined || maxTimestamp(batch) < timestamp) return undefined
  const section = recordsSection(batch)
  const records =
    codec === 'none' ? section : await compute.decompress(codec, section, OPENED_BYTES_MAX)
  const reader = new RecordReader(batch, records)
  for (let record = reader.next(); record !== undefined; record = reader.next()) {
    if (record.timestamp >= timestamp && record.offset >= logStart) {
      return { offset: record.offset, timestamp: record.timestamp }
    }
  }
  return undefined
}

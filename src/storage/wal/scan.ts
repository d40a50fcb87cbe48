// Reading one log file's records, good and bad. A file is a chain of frames with growing LSNs; a *run* is a piece of
// the chain without a fault:
//
//   | header | g r r r | g r x r r | g r r | torn or old bytes |
//              \____ run 1 ____/ ^     ^
//                                |     +-- run 3: found by the magic of its group header
//                                +-------- run 2: found by its LSN, inside the damaged group
//
// Nothing is judged here: whether a fault is damage or the torn end of the last group depends on all files (accept.ts).

import { putI64 } from '../../base/bytes.ts'
import { type FileHeader, RECORDS_AT } from './header.ts'
import {
  FRAME_BYTES,
  frameAt,
  frameKind,
  frameLsn,
  GROUP_MAGIC,
  getGroup,
  KIND_GROUP,
} from './record.ts'

const ZEROS = new Uint8Array(64 * 1024)

export interface Run {
  readonly sequence: number
  readonly position: number
  readonly endPosition: number
  readonly firstLsn: number
  /** LSN behind its last record. */
  readonly endLsn: number
  /** Begins with a record in mid-group: what came before is certainly lost. */
  readonly midGroup: boolean
}

export interface FileScan {
  readonly runs: readonly Run[]
  /** S + 1 over the group headers found: records below it were synced. 0: none found. */
  readonly syncedEnd: number
  readonly floorLsn: number
  readonly groups: number
}

/** Frames looked at in one go: even the smallest are checked within milliseconds. */
const STEP_BYTES = 1024 * 1024

/** `bytes` is the whole file. */
export function scanFile(bytes: Uint8Array, header: FileHeader): FileScan {
  const steps = scanSteps(bytes, header)
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** The same, step by step: between two the caller may let others have the thread. */
export function* scanSteps(bytes: Uint8Array, header: FileHeader): Generator<undefined, FileScan> {
  const { salt, sequence } = header
  const end = contentEnd(bytes)
  const runs: Run[] = []
  let syncedEnd = 0
  let floorLsn = 0
  let groups = 0
  let position = RECORDS_AT
  let firstLsn = header.firstLsn
  let midGroup = false
  let restAt = STEP_BYTES
  for (;;) {
    let at = position
    let lsn = firstLsn
    for (;;) {
      const size = frameAt(bytes, at, salt)
      if (size === 0 || frameLsn(bytes, at) !== lsn) break
      if (frameKind(bytes, at) === KIND_GROUP) {
        const group = getGroup(bytes, at)
        syncedEnd = Math.max(syncedEnd, group.syncedLsn + 1)
        floorLsn = Math.max(floorLsn, group.floorLsn)
        groups++
      } else lsn++
      at += size
      if (at < restAt) continue
      yield
      restAt = at + STEP_BYTES
    }
    if (lsn > firstLsn || runs.length === 0) {
      runs.push({ sequence, position, endPosition: at, firstLsn, endLsn: lsn, midGroup })
    }
    yield
    // Forward by at least a byte, past whatever does not fit the chain.
    const next = resync(bytes, end, at + 1, lsn, salt)
    if (next === undefined) break
    position = next
    firstLsn = frameLsn(bytes, next)
    midGroup = frameKind(bytes, next) !== KIND_GROUP
  }
  return { runs, syncedEnd, floorLsn, groups }
}

/**
 * Behind the last byte that is not zero. A file is as long as it will be before it is used: nearly all of a young one is
 * zeros, in which a search for an LSN, which begins with zeros, takes longest. No magic and no LSN is all zeros.
 */
function contentEnd(bytes: Uint8Array): number {
  let end = bytes.length
  while (end > 0) {
    const from = Math.max(0, end - ZEROS.length)
    if (Buffer.compare(bytes.subarray(from, end), ZEROS.subarray(0, end - from)) !== 0) break
    end = from
  }
  while (end > 0 && bytes[end - 1] === 0) end--
  return end
}

/** The next valid frame at or behind `from`: a group header, or one of the two records that come next in the chain. */
function resync(
  bytes: Uint8Array,
  end: number,
  from: number,
  lsn: number,
  salt: number,
): number | undefined {
  const group = find(bytes, GROUP_MAGIC, FRAME_BYTES, from, end, salt, isGroup)
  const until = group ?? end
  // Damage to a group header leaves its first record intact, damage to a record the one behind it.
  const same = find(bytes, lsnBytes(lsn), 12, from, until, salt, isRecord)
  const following = find(bytes, lsnBytes(lsn + 1), 12, from, same ?? until, salt, isRecord)
  return following ?? same ?? group
}

function lsnBytes(lsn: number): Uint8Array {
  const bytes = new Uint8Array(8)
  putI64(bytes, 0, lsn)
  return bytes
}

// Clients choose the bytes of their batches: a payload full of magics, each in a frame that says it is as long as the file,
// would cost a checksum over the file for each. A group's frame is short.
function isGroup(kind: number): boolean {
  return kind === KIND_GROUP
}

function isRecord(kind: number): boolean {
  return kind !== KIND_GROUP
}

/** The first valid frame of a wanted kind in [from, until) that has `needle` at `offset` from its start. */
function find(
  bytes: Uint8Array,
  needle: Uint8Array,
  offset: number,
  from: number,
  until: number,
  salt: number,
  wanted: (kind: number) => boolean,
): number | undefined {
  const buffer = Buffer.from(
    bytes.buffer,
    bytes.byteOffset,
    Math.min(bytes.length, until + FRAME_BYTES + 8),
  )
  let at = buffer.indexOf(needle, from + offset)
  while (at >= 0 && at - offset < until) {
    const frame = at - offset
    if (wanted(frameKind(bytes, frame)) && frameAt(bytes, frame, salt) > 0) return frame
    at = buffer.indexOf(needle, at + 1)
  }
  return undefined
}

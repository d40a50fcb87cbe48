// Records and group headers: the bytes of a log behind the file header.
//
//   group header | record | record | ... | group header | record | ...        (groups never cross files)
//
// Both are frames of one form, so that a reader needs to know only one:
//
//   0  u32  CRC32C over byte 4 to the end of the payload, seeded with the file's salt
//   4  u32  payload length
//   8  u32  kind              1 group header; the rest are records (types.ts)
//  12  u64  LSN               of the record; in a group header: of the record that follows
//  20       payload
//
// The payload of a group header:
//
//   0  8B   magic             to find the next group behind damaged bytes
//   8  u64  group number
//  16  u64  S                 the last LSN known to be synced when this was written
//  24  u64  floor             records below it were released: they are no longer needed from this log
//  32  u32  records in the group; 0: a mark
//
// The salt is what makes the frames safe: neither bytes in a payload nor those that an earlier use left in the file can
// imitate one, since the CRC of equal bytes differs with every other seed. A mark is not followed by
// records of its own: it only says that all before it was synced, and the next group is written over it. But for a mark
// that tells a floor because of which files were given up: the next group comes behind it.

import { getI64, getU32, putI64, putU32, utf8 } from '../../base/bytes.ts'
import { crc32c, crc32cOf } from '../../base/checksum.ts'

export const FRAME_BYTES = 20
export const KIND_GROUP = 1
export const GROUP_MAGIC: Uint8Array = utf8('EG\u0017group')
const GROUP_PAYLOAD_BYTES = 36
export const GROUP_BYTES: number = FRAME_BYTES + GROUP_PAYLOAD_BYTES

/**
 * Writes the frame of a record whose first payload bytes stand behind it in `into` already, up to `end`; `tail` is the
 * rest of the payload, which the caller writes from where it lies.
 */
export function putFrame(
  into: Uint8Array,
  at: number,
  end: number,
  kind: number,
  lsn: number,
  salt: number,
  tail: Uint8Array | undefined,
): void {
  const tailBytes = tail === undefined ? 0 : tail.length
  putU32(into, at + 4, end - at - FRAME_BYTES + tailBytes)
  putU32(into, at + 8, kind)
  putI64(into, at + 12, lsn)
  let crc = crc32cOf(into, at + 4, end, salt)
  if (tail !== undefined) crc = crc32c(tail, crc)
  putU32(into, at, crc)
}

export interface GroupHeader {
  readonly group: number
  /** S: the last LSN known to be synced; 0 when there is none. */
  readonly syncedLsn: number
  readonly floorLsn: number
  readonly records: number
}

export function putGroup(
  into: Uint8Array,
  at: number,
  firstLsn: number,
  header: GroupHeader,
  salt: number,
): void {
  const payload = at + FRAME_BYTES
  into.set(GROUP_MAGIC, payload)
  putI64(into, payload + 8, header.group)
  putI64(into, payload + 16, header.syncedLsn)
  putI64(into, payload + 24, header.floorLsn)
  putU32(into, payload + 32, header.records)
  putFrame(into, at, at + GROUP_BYTES, KIND_GROUP, firstLsn, salt, undefined)
}

/** The group header at `at`, whose frame was found valid. */
export function getGroup(bytes: Uint8Array, at: number): GroupHeader {
  const payload = at + FRAME_BYTES
  return {
    group: getI64(bytes, payload + 8),
    syncedLsn: getI64(bytes, payload + 16),
    floorLsn: getI64(bytes, payload + 24),
    records: getU32(bytes, payload + 32),
  }
}

/** Bytes of the whole frame at `at` when it is valid under `salt`; 0 when it is not. */
export function frameAt(bytes: Uint8Array, at: number, salt: number): number {
  if (at + FRAME_BYTES > bytes.length) return 0
  const kind = getU32(bytes, at + 8)
  const size = FRAME_BYTES + getU32(bytes, at + 4)
  if (kind === 0 || at + size > bytes.length) return 0
  if (kind === KIND_GROUP && size !== GROUP_BYTES) return 0
  return crc32cOf(bytes, at + 4, at + size, salt) === getU32(bytes, at) ? size : 0
}

export function frameKind(bytes: Uint8Array, at: number): number {
  return getU32(bytes, at + 8)
}

export function frameLsn(bytes: Uint8Array, at: number): number {
  return getI64(bytes, at + 12)
}

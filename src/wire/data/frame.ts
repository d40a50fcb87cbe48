// A frame on the data port holds one message: a head, and behind it the entries, if there are any.
//
//   u32 length │ u32 CRC32C │ u8 kind │ u32 count of entries │ u32 bytes of the head │ head │ entries
//              └──────────── covers kind to head ────────────────────────────────────┘
//
//   32 open          word.ts         36 watermarks     word.ts         40 fetch      word.ts
//   33 opened        word.ts         37 refuse         word.ts         41 fetched    load.ts
//   34 append        load.ts         38 stage          load.ts
//   35 acks          word.ts         39 stage-stored   word.ts         42 stage-dropped   word.ts
//
// `length` counts the bytes behind it. The entries have their own checksums (entries.ts) and are not covered again: they are
// nearly all of the bytes. How many they are stands in the head's checksum, so none is missing unnoticed. Kinds below 32 are
// those of the connection itself: hellos, pings (broker/links).

import { putU32 } from '../../base/bytes.ts'
import { crc32cOf } from '../../base/checksum.ts'
import { ByteReader, ByteWriter, Truncated } from '../../base/cursor.ts'
import { ENVELOPE_BYTES } from '../../model/entry.ts'
import { BATCH_BYTES_MAX } from '../../model/limits.ts'
import { MIB } from '../../model/policy.ts'
import type { EncodedEntries } from './entries.ts'
import type { DataMessage } from './types.ts'

const KINDS: readonly DataMessage['kind'][] = [
  'open',
  'opened',
  'append',
  'acks',
  'watermarks',
  'refuse',
  'stage',
  'stage-stored',
  'fetch',
  'fetched',
  'stage-dropped',
]

/** 'EGDL', of the hellos on this port. */
export const DATA_MAGIC = 0x4547444c
export const DATA_VERSION = 1

const FIRST_KIND = 32
/** A frame with so much is closed and the next one begun: others wait for it. One entry may be larger, and is alone then. */
export const DATA_FRAME_BYTES_ENOUGH: number = MIB
/** Of a frame without its length field: so much a broker takes. What is no entry has room beside the largest one. */
export const DATA_FRAME_BYTES_MAX: number = BATCH_BYTES_MAX + ENVELOPE_BYTES + 2 * MIB

const LENGTH_BYTES = 4
const CRC_AT = 4
const KIND_AT = 8
const HEAD_BYTES_AT = 13
const HEAD_AT = 17

/** The buffers of one frame: its head, then the pieces of the entries. */
export function frameOf(
  kind: DataMessage['kind'],
  head: (w: ByteWriter) => void,
  { count, bytes, pieces }: EncodedEntries,
): readonly Uint8Array[] {
  const w = new ByteWriter(128)
  w.u32(0)
    .u32(0)
    .u8(FIRST_KIND + KINDS.indexOf(kind))
    .u32(count)
    .u32(0)
  head(w)
  const { size } = w
  w.setU32(0, size - LENGTH_BYTES + bytes)
  w.setU32(HEAD_BYTES_AT, size - HEAD_AT)
  const begin = w.finish()
  putU32(begin, CRC_AT, crc32cOf(begin, KIND_AT, size))
  return [begin, ...pieces]
}

export interface OpenedFrame {
  readonly kind: DataMessage['kind']
  readonly head: ByteReader
  readonly entries: number
  /** Of the first entry in the frame. */
  readonly entriesAt: number
}

/** `frame` is without its length field. Throws Truncated. */
export function openFrame(frame: Uint8Array): OpenedFrame {
  const r = new ByteReader(frame)
  const crc = r.u32()
  const kind = KINDS[r.u8() - FIRST_KIND]
  const entries = r.u32()
  const headBytes = r.u32()
  const headAt = r.at
  r.raw(headBytes)
  if (crc32cOf(frame, KIND_AT - LENGTH_BYTES, r.at) !== crc) {
    throw new Truncated('a checksum does not match')
  }
  if (kind === undefined) throw new Truncated('a frame of an unknown kind')
  return { kind, head: new ByteReader(frame, headAt, r.at), entries, entriesAt: r.at }
}

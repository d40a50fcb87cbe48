// The heads of the messages that carry neither entries nor a state.
//
//   open           u32 channel │ key │ text token │ u64 end │ u64 high watermark
//   opened         u32 channel │ u8 0 ready: u64 next │ u64 durable end
//                              │ u8 1 not yet
//                              │ u8 2 refused: text why
//   acks           u32 count │ per channel: u32 channel │ u64 end
//   watermarks     u32 count │ per channel: u32 channel │ u64 high watermark
//   refuse         u32 channel │ u64 entry number │ text why
//   stage-stored   u64 order │ optional text failed
//   stage-dropped  u64 order
//   fetch          u64 id │ key │ optional text token │ u64 from │ u64 below │ u32 bytes at most

import { unreachable } from '../../base/assert.ts'
import { type ByteReader, type ByteWriter, readList, Truncated } from '../../base/cursor.ts'
import { NO_ENTRIES } from './entries.ts'
import { readKey, readOptionalText, writeKey, writeOptionalText } from './fields.ts'
import { frameOf } from './frame.ts'
import type { DataWord, OpenedResult } from './types.ts'

const READY = 0
const NOT_YET = 1
const REFUSED = 2
/** A channel and a number. */
const PAIR_BYTES = 12

export function wordFrame(word: DataWord): Uint8Array {
  const [frame] = frameOf(word.kind, (w) => writeWord(w, word), NO_ENTRIES)
  return frame as Uint8Array
}

function writeWord(w: ByteWriter, word: DataWord): void {
  switch (word.kind) {
    case 'open':
      w.u32(word.channel)
      writeKey(w, word.key)
      w.text(word.token).i64(word.end).i64(word.highWatermark)
      return
    case 'opened':
      w.u32(word.channel)
      writeResult(w, word.result)
      return
    case 'acks':
      w.u32(word.of.length)
      for (const { channel, end } of word.of) w.u32(channel).i64(end)
      return
    case 'watermarks':
      w.u32(word.of.length)
      for (const { channel, highWatermark } of word.of) w.u32(channel).i64(highWatermark)
      return
    case 'refuse':
      w.u32(word.channel).i64(word.entryNumber).text(word.why)
      return
    case 'stage-stored':
      w.i64(word.order)
      writeOptionalText(w, word.failed)
      return
    case 'stage-dropped':
      w.i64(word.order)
      return
    case 'fetch':
      w.i64(word.id)
      writeKey(w, word.key)
      writeOptionalText(w, word.token)
      w.i64(word.from).i64(word.below).u32(word.bytesMax)
      return
    default:
      unreachable(word)
  }
}

/** Throws Truncated. */
export function readWord(kind: DataWord['kind'], r: ByteReader): DataWord {
  switch (kind) {
    case 'open':
      return {
        kind,
        channel: r.u32(),
        key: readKey(r),
        token: r.text(),
        end: r.u53(),
        highWatermark: r.u53(),
      }
    case 'opened':
      return { kind, channel: r.u32(), result: readResult(r) }
    case 'acks':
      return { kind, of: readList(r, PAIR_BYTES, () => ({ channel: r.u32(), end: r.u53() })) }
    case 'watermarks':
      return {
        kind,
        of: readList(r, PAIR_BYTES, () => ({ channel: r.u32(), highWatermark: r.u53() })),
      }
    case 'refuse':
      return { kind, channel: r.u32(), entryNumber: r.u53(), why: r.text() }
    case 'stage-stored':
      return { kind, order: r.u53(), failed: readOptionalText(r) }
    case 'stage-dropped':
      return { kind, order: r.u53() }
    case 'fetch':
      return {
        kind,
        id: r.u53(),
        key: readKey(r),
        token: readOptionalText(r),
        from: r.u53(),
        below: r.u53(),
        bytesMax: r.u32(),
      }
    default:
      return unreachable(kind)
  }
}

function writeResult(w: ByteWriter, result: OpenedResult): void {
  switch (result.kind) {
    case 'ready':
      w.u8(READY).i64(result.next).i64(result.durableEnd)
      return
    case 'not-yet':
      w.u8(NOT_YET)
      return
    case 'refused':
      w.u8(REFUSED).text(result.why)
      return
    default:
      unreachable(result)
  }
}

function readResult(r: ByteReader): OpenedResult {
  const code = r.u8()
  switch (code) {
    case READY:
      return { kind: 'ready', next: r.u53(), durableEnd: r.u53() }
    case NOT_YET:
      return { kind: 'not-yet' }
    case REFUSED:
      return { kind: 'refused', why: r.text() }
    default:
      throw new Truncated(`an open is answered with ${code}`)
  }
}

// The messages that carry entries, or a state. What stands in the head:
//
//   append    u32 channel │ u64 high watermark
//   stage     u64 order │ key │ text token │ u64 tail from │ u64 end │ u64 bytes of the state │ u64 offset │ blob │ bool last
//   fetched   u64 id │ optional text failed │ bool last

import { unreachable } from '../../base/assert.ts'
import { type ByteReader, Truncated } from '../../base/cursor.ts'
import { decodeEntries, type EncodedEntries } from './entries.ts'
import { readKey, readOptionalText, writeKey, writeOptionalText } from './fields.ts'
import { frameOf, openFrame } from './frame.ts'
import type { Append, DataLoad, DataMessage, Entries, Fetched, Stage } from './types.ts'
import { readWord } from './word.ts'

type HeadOf<T> = Omit<T, 'kind' | keyof Entries>

export function appendFrame(
  { channel, highWatermark }: HeadOf<Append>,
  entries: EncodedEntries,
): readonly Uint8Array[] {
  return frameOf('append', (w) => w.u32(channel).i64(highWatermark), entries)
}

export function stageFrame(stage: HeadOf<Stage>, entries: EncodedEntries): readonly Uint8Array[] {
  const { order, key, token, tailFrom, end, stateBytes, stateOffset, state, last } = stage
  return frameOf(
    'stage',
    (w) => {
      w.i64(order)
      writeKey(w, key)
      w.text(token).i64(tailFrom).i64(end).i64(stateBytes).i64(stateOffset).blob(state).bool(last)
    },
    entries,
  )
}

export function fetchedFrame(
  { id, failed, last }: HeadOf<Fetched>,
  entries: EncodedEntries,
): readonly Uint8Array[] {
  return frameOf(
    'fetched',
    (w) => {
      w.i64(id)
      writeOptionalText(w, failed)
      w.bool(last)
    },
    entries,
  )
}

/** `frame` is without its length field; the message has views of it. Throws Truncated. */
export function readDataMessage(frame: Uint8Array): DataMessage {
  const { kind, head, entries, entriesAt } = openFrame(frame)
  const found = decodeEntries(frame, entriesAt, entries)
  const message = isLoad(kind) ? readLoad(kind, head, found) : readWord(kind, head)
  head.done()
  if (entries > 0 && !isLoad(kind)) throw new Truncated(`entries behind ${kind}`)
  return message
}

function isLoad(kind: DataMessage['kind']): kind is DataLoad['kind'] {
  return kind === 'append' || kind === 'stage' || kind === 'fetched'
}

function readLoad(kind: DataLoad['kind'], r: ByteReader, entries: Entries): DataLoad {
  switch (kind) {
    case 'append':
      return { kind, channel: r.u32(), highWatermark: r.u53(), ...entries }
    case 'stage':
      return { ...readStage(r), ...entries }
    case 'fetched':
      return { kind, id: r.u53(), failed: readOptionalText(r), last: r.bool(), ...entries }
    default:
      return unreachable(kind)
  }
}

function readStage(r: ByteReader): Omit<Stage, keyof Entries> {
  const order = r.u53()
  const key = readKey(r)
  const token = r.text()
  const tailFrom = r.u53()
  const end = r.u53()
  const stateBytes = r.u53()
  const stateOffset = r.u53()
  const state = r.blob()
  if (tailFrom > end) throw new Truncated(`a tail from ${tailFrom} to ${end}`)
  if (stateOffset + state.length > stateBytes) {
    throw new Truncated(`a part of a state ends at ${stateOffset + state.length} of ${stateBytes}`)
  }
  return {
    kind: 'stage',
    order,
    key,
    token,
    tailFrom,
    end,
    stateBytes,
    stateOffset,
    state,
    last: r.bool(),
  }
}

// FORCE_END: an operator ends the open segment of a range that no coordinator can end, since nobody surely has all of it. First it
// is asked what is known; then, naming the segment that was meant, where it is to end.
//
//   request   text topic │ u32 range │ i64 segment │ i64 end       -1 and -1: nothing is to be done, only told
//   response  i64 segment │ i64 high watermark │ list answer │ list 16B node id of a replica that has not answered
//   answer    16B node id │ i64 end │ text why it is unsure (empty: it is sure)

import { readList, writeList } from '../../base/cursor.ts'
import { readNodeId, writeId } from '../../model/id-bytes.ts'
import type { Forceable } from '../../model/segment-ends.ts'
import type { Message } from './message.ts'
import { OPERATION } from './operations.ts'

/** Of segment and end: nothing is to be done. */
export const ONLY_TOLD = -1

export interface ForceEndRequest {
  readonly topic: string
  readonly range: number
  readonly segment: number
  readonly end: number
}

export interface ForceEndResponse extends Forceable {
  readonly segment: number
}

export const forceEnd: Message<ForceEndRequest, ForceEndResponse> = {
  operation: OPERATION.FORCE_END,
  writeRequest: (w, q) => {
    w.text(q.topic).u32(q.range).i64(q.segment).i64(q.end)
  },
  readRequest: (r) => ({ topic: r.text(), range: r.u32(), segment: r.i64(), end: r.i64() }),
  writeResponse: (w, s) => {
    w.i64(s.segment).i64(s.highWatermark)
    writeList(w, s.answers, (_, { node, end, unsure = '' }) => {
      writeId(w, node)
      w.i64(end).text(unsure)
    })
    writeList(w, s.silent, (_, node) => writeId(w, node))
  },
  readResponse: (r) => {
    const segment = r.i64()
    const highWatermark = r.i64()
    const answers = readList(r, 26, () => {
      const node = readNodeId(r)
      const end = r.i64()
      const unsure = r.text()
      return { node, end, unsure: unsure === '' ? undefined : unsure }
    })
    return { segment, highWatermark, answers, silent: readList(r, 16, () => readNodeId(r)) }
  },
}

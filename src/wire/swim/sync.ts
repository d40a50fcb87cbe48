// A whole state, asked for and answered over a stream. What carries it frames and checksums it.
//
//   request   u8 version │ bool cluster known? cluster │ state
//   answer    u8 version │ u8 0 │ cluster │ state
//             u8 version │ u8 1 other cluster │ cluster      u8 2 old life │ u32 boot      u8 3 itself      u8 4 no member
//   state     id from │ life │ u32 count, updates │ u32 count, hints

import { unreachable } from '../../base/assert.ts'
import { ByteReader, ByteWriter, Truncated } from '../../base/cursor.ts'
import { ID_BYTES, readNodeId, writeId } from '../../model/id-bytes.ts'
import {
  MEMBERS_MAX,
  SHARDS_MAX,
  type SyncAnswer,
  type SyncRequest,
  type SyncState,
} from '../../model/swim.ts'
import {
  CLUSTER_BYTES,
  HINT_BYTES,
  LIFE_BYTES,
  readCluster,
  readHint,
  readLife,
  readUpdate,
  UPDATE_BYTES_MAX,
  UPDATE_BYTES_MIN,
  writeCluster,
  writeHint,
  writeLife,
  writeUpdate,
} from './fields.ts'

const VERSION = 3
/** The sender itself is one more than those that it keeps in mind. */
const UPDATES_MAX = MEMBERS_MAX + 1
/** Of a request and of an answer: so much a broker takes. */
export const SYNC_BYTES_MAX: number =
  2 +
  CLUSTER_BYTES +
  ID_BYTES +
  LIFE_BYTES +
  8 +
  UPDATES_MAX * UPDATE_BYTES_MAX +
  SHARDS_MAX * HINT_BYTES

const ANSWERED = 0
const OTHER_CLUSTER = 1
const OLD_LIFE = 2
const ITSELF = 3
const NO_MEMBER = 4

export function writeSyncRequest(request: SyncRequest): Uint8Array {
  const w = new ByteWriter(1024)
  w.u8(VERSION).bool(request.cluster !== undefined)
  if (request.cluster !== undefined) writeCluster(w, request.cluster)
  writeState(w, request)
  return w.finish()
}

/** Throws Truncated for everything that `writeSyncRequest` does not write. */
export function readSyncRequest(bytes: Uint8Array): SyncRequest {
  const r = begin(bytes)
  const cluster = r.bool() ? readCluster(r) : undefined
  const state = readState(r)
  r.done()
  return { kind: 'sync', cluster, ...state }
}

export function writeSyncAnswer(answer: SyncAnswer): Uint8Array {
  const w = new ByteWriter(1024)
  w.u8(VERSION)
  if (answer.kind === 'sync-answer') {
    w.u8(ANSWERED)
    writeCluster(w, answer.cluster)
    writeState(w, answer)
    return w.finish()
  }
  switch (answer.reason) {
    case 'other-cluster':
      w.u8(OTHER_CLUSTER)
      writeCluster(w, answer.cluster)
      break
    case 'old-life':
      w.u8(OLD_LIFE).u32(answer.boot)
      break
    case 'itself':
      w.u8(ITSELF)
      break
    case 'no-member':
      w.u8(NO_MEMBER)
      break
    default:
      unreachable(answer)
  }
  return w.finish()
}

/** Throws Truncated for everything that `writeSyncAnswer` does not write. */
export function readSyncAnswer(bytes: Uint8Array): SyncAnswer {
  const r = begin(bytes)
  const answer = readAnswer(r, r.u8())
  r.done()
  return answer
}

function readAnswer(r: ByteReader, code: number): SyncAnswer {
  const kind = 'sync-refused'
  switch (code) {
    case ANSWERED:
      return { kind: 'sync-answer', cluster: readCluster(r), ...readState(r) }
    case OTHER_CLUSTER:
      return { kind, reason: 'other-cluster', cluster: readCluster(r) }
    case OLD_LIFE:
      return { kind, reason: 'old-life', boot: r.u32() }
    case ITSELF:
      return { kind, reason: 'itself' }
    case NO_MEMBER:
      return { kind, reason: 'no-member' }
    default:
      throw new Truncated(`a sync is answered with ${code}`)
  }
}

function begin(bytes: Uint8Array): ByteReader {
  const r = new ByteReader(bytes)
  const version = r.u8()
  if (version !== VERSION) throw new Truncated(`a sync of version ${version}, not ${VERSION}`)
  return r
}

function writeState(w: ByteWriter, state: SyncState): void {
  writeId(w, state.from)
  writeLife(w, state)
  w.u32(state.updates.length)
  for (const update of state.updates) writeUpdate(w, update)
  w.u32(state.hints.length)
  for (const hint of state.hints) writeHint(w, hint)
}

function readState(r: ByteReader): SyncState {
  const from = readNodeId(r)
  const life = readLife(r)
  const updates = many(r, UPDATE_BYTES_MIN, UPDATES_MAX)
  const read = Array.from({ length: updates }, () => readUpdate(r))
  const hints = many(r, HINT_BYTES, SHARDS_MAX)
  return { from, ...life, updates: read, hints: Array.from({ length: hints }, () => readHint(r)) }
}

function many(r: ByteReader, leastBytes: number, most: number): number {
  const count = r.count(leastBytes)
  if (count > most) throw new Truncated(`${count} elements, of at most ${most}`)
  return count
}

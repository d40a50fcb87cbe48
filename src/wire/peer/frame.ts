// Frames on a link between two brokers. All that one turn has for one peer, of all shards, travels in one frame.
//
//   u32 length │ u32 CRC32C of what follows │ u8 kind │ body
//
//   1 hello      hello.ts            dialer -> acceptor, first
//   2 welcome    hello.ts            acceptor -> dialer, first
//   3 refusal    hello.ts            acceptor -> dialer, instead; then it closes
//   4 ping       u32 number          dialer -> acceptor
//   5 pong       u32 number          acceptor -> dialer; of the last ping that came
//   6 messages   message.ts, one after another to the end of the frame
//   7 sync       wire/swim's sync.ts; dialer -> acceptor, first and alone: it asks who is there, and needs no hello for that
//   8 answer     wire/swim's sync.ts; acceptor -> dialer, then it closes
//   9 key hello, 10 key welcome      key-hello.ts; first of all where there is a cluster key, and then all else is sealed
//
// `length` counts the bytes behind it. Why a checksum: TCP's is 16 bits wide and is made anew by whatever stands between
// two machines; a flipped bit in a term or a vote would not be noticed by anything else. A length that was flipped puts
// the next frames in the wrong place, and their checksums tell.

import { crc32cOf } from '../../base/checksum.ts'
import { ByteReader, ByteWriter, Truncated } from '../../base/cursor.ts'
import type { NodeId } from '../../model/ids.ts'
import { MIB } from '../../model/policy.ts'
import { readMessage, writeMessage } from './message.ts'
import type { PeerMessage } from './types.ts'

export const FRAME = {
  HELLO: 1,
  WELCOME: 2,
  REFUSAL: 3,
  PING: 4,
  PONG: 5,
  MESSAGES: 6,
  SYNC: 7,
  SYNC_ANSWER: 8,
  KEY_HELLO: 9,
  KEY_WELCOME: 10,
} as const

/** Of a frame without its length field: so much a broker takes. */
export const PEER_FRAME_BYTES_MAX: number = 16 * MIB
/** A frame with so much is closed and the next one begun: what follows must not wait for all of it. */
const FRAME_BYTES_ENOUGH: number = MIB
/** What is larger fits no frame that has something in it already. */
export const PEER_MESSAGE_BYTES_MAX: number = PEER_FRAME_BYTES_MAX - 2 * MIB

const LENGTH_BYTES = 4
const CRC_AT = 4
const KIND_AT = 8
const BODY_AT = 9
/** Of a frame without its length field: checksum and kind. */
export const PEER_FRAME_BYTES_AROUND: number = BODY_AT - LENGTH_BYTES

/** Of the frame that begins here; undefined while that is not there yet. */
export function kindAhead(begin: Uint8Array): number | undefined {
  return begin[KIND_AT]
}

function open(kind: number, capacity?: number): ByteWriter {
  return new ByteWriter(capacity).u32(0).u32(0).u8(kind)
}

function seal(w: ByteWriter): Uint8Array {
  const { size } = w
  w.setU32(0, size - LENGTH_BYTES)
  w.setU32(CRC_AT, crc32cOf(w.finish(), KIND_AT, size))
  return w.finish()
}

/** A frame of any kind but messages. */
export function frameOf(kind: number, write: (w: ByteWriter) => void): Uint8Array {
  const w = open(kind)
  write(w)
  return seal(w)
}

/** What a frame (without its length field) holds. Throws Truncated when it does not match its checksum. */
export function openFrame(frame: Uint8Array): { readonly kind: number; readonly body: ByteReader } {
  const r = new ByteReader(frame)
  const crc = r.u32()
  if (crc32cOf(frame, r.at, frame.length) !== crc) throw new Truncated('a checksum does not match')
  return { kind: r.u8(), body: r }
}

export interface MessageFrames {
  readonly frames: readonly Uint8Array[]
  /** Messages that were left out because they are larger than PEER_MESSAGE_BYTES_MAX. */
  readonly tooLarge: number
}

/** One frame, unless that becomes large. */
export function messageFrames(messages: readonly PeerMessage[]): MessageFrames {
  const frames: Uint8Array[] = []
  let tooLarge = 0
  let w = open(FRAME.MESSAGES)
  for (const message of messages) {
    const before = w.size
    writeMessage(w, message)
    if (w.size - before > PEER_MESSAGE_BYTES_MAX) {
      w.truncate(before)
      tooLarge++
    }
    if (w.size < FRAME_BYTES_ENOUGH) continue
    frames.push(seal(w))
    w = open(FRAME.MESSAGES)
  }
  if (w.size > BODY_AT) frames.push(seal(w))
  return { frames, tooLarge }
}

/** The body of a frame of messages. Throws Truncated. */
export function readMessages(r: ByteReader, from: NodeId, to: NodeId): readonly PeerMessage[] {
  const messages: PeerMessage[] = []
  do messages.push(readMessage(r, from, to))
  while (r.left > 0)
  return messages
}

export function pingFrame(number: number): Uint8Array {
  return frameOf(FRAME.PING, (w) => w.u32(number))
}
export function pongFrame(number: number): Uint8Array {
  return frameOf(FRAME.PONG, (w) => w.u32(number))
}
/** The body of a ping or a pong. Throws Truncated. */
export function readNumbered(r: ByteReader): number {
  const number = r.u32()
  r.done()
  return number
}

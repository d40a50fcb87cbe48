// Who stands at the two ends of a link. The dialer says who it is and whom it means to reach; the acceptor says who it is,
// or why it will not have the link.
//
//   hello     u32 magic │ u16 version │ 16B cluster id │ 16B node id │ starts │ 16B node id of whom it means
//   welcome   u32 magic │ u16 version │ 16B cluster id │ 16B node id │ starts
//   refusal   u8 reason │ text for people
//
//   starts    u8 count (1 to 32) │ per start: u64 boot count │ 8B start id;  the last ones of the node, newest last
//
// Magic and version never move; a later version may append fields, and a reader passes over what follows those it knows.

import { assert } from '../../base/assert.ts'
import { fromHex, toHex } from '../../base/bytes.ts'
import { type ByteReader, type ByteWriter, Truncated } from '../../base/cursor.ts'
import { readClusterId, readNodeId, writeId } from '../../model/id-bytes.ts'
import type { ClusterId, NodeId } from '../../model/ids.ts'
import { START_ID_BYTES, STARTS_MAX, type Start, type Starts } from '../../model/starts.ts'
import { readChoice, writeChoice } from './fields.ts'
import { FRAME, frameOf } from './frame.ts'

/** 'EGPL': on the cluster port. Other ports have others, so that who reaches the wrong one is told apart. */
export const PEER_MAGIC = 0x4547504c
export const PEER_VERSION = 1
/** Of a frame before the link is up. */
export const PEER_HELLO_BYTES_MAX = 1024

export interface Identity {
  readonly clusterId: ClusterId
  readonly nodeId: NodeId
  /** Its last ones; the newest is that which speaks. */
  readonly starts: Starts
}

export interface Hello extends Identity {
  readonly version: number
  /** The node that the dialer takes the acceptor for: an address may have got another tenant. */
  readonly to: NodeId
}

export interface Welcome extends Identity {
  readonly version: number
}

/** The place is the format: new ones go to the end. */
export const REFUSAL_REASONS = [
  'version',
  'cluster',
  /** The dialer means another node. */
  'wrong-node',
  /** The dialer has the acceptor's own node id. */
  'own-node',
  /** A start of the same node was here that is not in the dialer's past. */
  'old-boot',
  /** The dialer has no cluster key, and the acceptor has one; the other way round; they have different ones. */
  'key-needed',
  'no-key',
  'other-key',
] as const
type RefusalReason = (typeof REFUSAL_REASONS)[number]

export interface HelloRefusal {
  readonly reason: RefusalReason
  readonly text: string
}

export function helloFrame(hello: Hello, magic: number = PEER_MAGIC): Uint8Array {
  return frameOf(FRAME.HELLO, (w) => {
    writeIdentity(w, magic, hello.version, hello)
    writeId(w, hello.to)
  })
}
export function readHello(r: ByteReader, magic: number = PEER_MAGIC): Hello {
  const hello = { ...readIdentity(r, magic), to: readNodeId(r) }
  r.raw(r.left)
  return hello
}

export function welcomeFrame(welcome: Welcome, magic: number = PEER_MAGIC): Uint8Array {
  return frameOf(FRAME.WELCOME, (w) => writeIdentity(w, magic, welcome.version, welcome))
}
export function readWelcome(r: ByteReader, magic: number = PEER_MAGIC): Welcome {
  const welcome = readIdentity(r, magic)
  r.raw(r.left)
  return welcome
}

export function refusalFrame({ reason, text }: HelloRefusal): Uint8Array {
  return frameOf(FRAME.REFUSAL, (w) => {
    writeChoice(w, REFUSAL_REASONS, reason)
    w.text(text)
  })
}
export function readRefusal(r: ByteReader): HelloRefusal {
  const refusal = { reason: readChoice(r, REFUSAL_REASONS), text: r.text() }
  r.raw(r.left)
  return refusal
}

function writeIdentity(w: ByteWriter, magic: number, version: number, identity: Identity): void {
  w.u32(magic).u16(version)
  writeId(w, identity.clusterId)
  writeId(w, identity.nodeId)
  writeStarts(w, identity.starts)
}
function readIdentity(r: ByteReader, magic: number): Welcome {
  const told = r.u32()
  if (told !== magic) throw new Truncated(`the magic is 0x${told.toString(16)}`)
  return {
    version: r.u16(),
    clusterId: readClusterId(r),
    nodeId: readNodeId(r),
    starts: readStarts(r),
  }
}

function writeStarts(w: ByteWriter, starts: Starts): void {
  assert(starts.length <= STARTS_MAX, `at most ${STARTS_MAX} starts are told`)
  w.u8(starts.length)
  for (const { bootCount, id } of starts) w.i64(bootCount).raw(fromHex(id))
}
function readStarts(r: ByteReader): Starts {
  const count = r.u8()
  if (count === 0 || count > STARTS_MAX) throw new Truncated(`${count} starts are told`)
  const first = readStart(r, 0)
  const later: Start[] = []
  let last = first
  while (later.length < count - 1) {
    last = readStart(r, last.bootCount)
    later.push(last)
  }
  return [first, ...later]
}
function readStart(r: ByteReader, after: number): Start {
  const bootCount = r.u53()
  if (bootCount <= after) throw new Truncated(`start ${bootCount} is told behind start ${after}`)
  return { bootCount, id: toHex(r.raw(START_ID_BYTES)) }
}

// Who stands at the two ends of a link. The dialer says who it is and whom it means to reach; the acceptor says who it is,
// or why it will not have the link.
//
//   hello     u32 magic │ u16 version │ 16B cluster id │ 16B node id │ u64 boot count │ 16B node id of whom it means
//   welcome   u32 magic │ u16 version │ 16B cluster id │ 16B node id │ u64 boot count
//   refusal   u8 reason │ text for people
//
// Magic and version never move; a later version may append fields, and a reader passes over what follows those it knows.

import { type ByteReader, type ByteWriter, Truncated } from '../../base/cursor.ts'
import { readClusterId, readNodeId, writeId } from '../../model/id-bytes.ts'
import type { ClusterId, NodeId } from '../../model/ids.ts'
import { readChoice, writeChoice } from './fields.ts'
import { FRAME, frameOf } from './frame.ts'

/** 'EGPL' */
const MAGIC = 0x4547504c
export const PEER_VERSION = 1
/** Of a frame before the link is up. */
export const PEER_HELLO_BYTES_MAX = 1024

export interface Identity {
  readonly clusterId: ClusterId
  readonly nodeId: NodeId
  /** Grows with every start of the node. */
  readonly bootCount: number
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
  /** A later start of the same node was here already. */
  'old-boot',
] as const
type RefusalReason = (typeof REFUSAL_REASONS)[number]

export interface HelloRefusal {
  readonly reason: RefusalReason
  readonly text: string
}

export function helloFrame(hello: Hello): Uint8Array {
  return frameOf(FRAME.HELLO, (w) => {
    writeIdentity(w, hello.version, hello)
    writeId(w, hello.to)
  })
}
export function readHello(r: ByteReader): Hello {
  const hello = { ...readIdentity(r), to: readNodeId(r) }
  r.raw(r.left)
  return hello
}

export function welcomeFrame(welcome: Welcome): Uint8Array {
  return frameOf(FRAME.WELCOME, (w) => writeIdentity(w, welcome.version, welcome))
}
export function readWelcome(r: ByteReader): Welcome {
  const welcome = readIdentity(r)
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

function writeIdentity(w: ByteWriter, version: number, identity: Identity): void {
  w.u32(MAGIC).u16(version)
  writeId(w, identity.clusterId)
  writeId(w, identity.nodeId)
  w.i64(identity.bootCount)
}
function readIdentity(r: ByteReader): Welcome {
  const magic = r.u32()
  if (magic !== MAGIC) throw new Truncated(`the magic is 0x${magic.toString(16)}`)
  return {
    version: r.u16(),
    clusterId: readClusterId(r),
    nodeId: readNodeId(r),
    bootCount: r.u53(),
  }
}

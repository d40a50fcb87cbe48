// One packet, which is one datagram.
//
//   u32 CRC32C of the rest │ u8 version │ u8 kind │ cluster │ id from │ life │ body │ u8 count, updates │ u8 count, hints
//
//   kind  0 ping          u32 sequence │ id to
//         1 ping-request  u32 sequence │ id target │ address
//         2 ack           u32 sequence
//         3 nack          u32 sequence
//         4 gossip        nothing
//         5 refused       life │ u32 remembered boot
//
// The version changes with the layout; a reader takes its own only. The checksum is there because UDP's is weak and what
// is read here decides who is alive. A packet has room for PACKET_BYTES_MAX less what sealing it adds.

import { unreachable } from '../../base/assert.ts'
import { crc32c } from '../../base/checksum.ts'
import { ByteReader, ByteWriter, Truncated } from '../../base/cursor.ts'
import { ID_BYTES, readNodeId, writeId } from '../../model/id-bytes.ts'
import {
  PACKET_BYTES_MAX,
  PACKET_SEAL_BYTES,
  type Packet,
  type PacketBody,
} from '../../model/swim.ts'
import {
  addressBytes,
  CLUSTER_BYTES,
  HINT_BYTES,
  LIFE_BYTES,
  readAddress,
  readCluster,
  readHint,
  readLife,
  readUpdate,
  UPDATE_BYTES_MIN,
  writeAddress,
  writeCluster,
  writeHint,
  writeLife,
  writeUpdate,
} from './fields.ts'

const VERSION = 3
const KINDS: readonly PacketBody['kind'][] = [
  'ping',
  'ping-request',
  'ack',
  'nack',
  'gossip',
  'refused',
]

export const PLAIN_BYTES_MAX: number = PACKET_BYTES_MAX - PACKET_SEAL_BYTES
/** Without the body: checksum, version, kind, sender, and the two counts. */
const AROUND_BODY: number = 4 + 2 + CLUSTER_BYTES + ID_BYTES + LIFE_BYTES + 2

/** For the updates and hints beside this body. */
export function packetRoom(body: PacketBody): number {
  return PLAIN_BYTES_MAX - AROUND_BODY - bodyBytes(body)
}

function bodyBytes(body: PacketBody): number {
  switch (body.kind) {
    case 'ping':
      return 4 + ID_BYTES
    case 'ping-request':
      return 4 + ID_BYTES + addressBytes(body.address)
    case 'ack':
    case 'nack':
      return 4
    case 'gossip':
      return 0
    case 'refused':
      return LIFE_BYTES + 4
    default:
      return unreachable(body)
  }
}

export function writePacket(packet: Packet): Uint8Array {
  const { cluster, from, body, updates, hints } = packet
  const w = new ByteWriter(PLAIN_BYTES_MAX)
  w.u32(0).u8(VERSION).u8(KINDS.indexOf(body.kind))
  writeCluster(w, cluster)
  writeId(w, from)
  writeLife(w, packet)
  writeBody(w, body)
  w.u8(updates.length)
  for (const update of updates) writeUpdate(w, update)
  w.u8(hints.length)
  for (const hint of hints) writeHint(w, hint)
  if (w.size > PLAIN_BYTES_MAX) throw new RangeError(`a packet of ${w.size} bytes`)
  w.setU32(0, crc32c(w.finish().subarray(4)))
  return w.finish()
}

/** Throws Truncated for everything that `writePacket` does not write. */
export function readPacket(bytes: Uint8Array): Packet {
  if (bytes.length > PLAIN_BYTES_MAX) throw new Truncated(`a packet of ${bytes.length} bytes`)
  const r = new ByteReader(bytes)
  if (r.u32() !== crc32c(bytes.subarray(4))) throw new Truncated('a packet with a wrong checksum')
  const version = r.u8()
  if (version !== VERSION) throw new Truncated(`a packet of version ${version}, not ${VERSION}`)
  const kind = r.u8()
  const cluster = readCluster(r)
  const from = readNodeId(r)
  const life = readLife(r)
  const body = readBody(r, KINDS[kind])
  const updates = Array.from({ length: atMost(r, UPDATE_BYTES_MIN) }, () => readUpdate(r))
  const hints = Array.from({ length: atMost(r, HINT_BYTES) }, () => readHint(r))
  r.done()
  return { cluster, from, ...life, body, updates, hints }
}

function atMost(r: ByteReader, leastBytes: number): number {
  const count = r.u8()
  if (count * leastBytes > r.left) {
    throw new Truncated(`${count} elements announced, ${r.left} bytes left`)
  }
  return count
}

function writeBody(w: ByteWriter, body: PacketBody): void {
  switch (body.kind) {
    case 'ping':
      w.u32(body.sequence)
      return writeId(w, body.to)
    case 'ping-request':
      w.u32(body.sequence)
      writeId(w, body.target)
      return writeAddress(w, body.address)
    case 'ack':
    case 'nack':
      w.u32(body.sequence)
      return
    case 'gossip':
      return
    case 'refused':
      writeLife(w, body.refused)
      w.u32(body.boot)
      return
    default:
      unreachable(body)
  }
}

function readBody(r: ByteReader, kind: PacketBody['kind'] | undefined): PacketBody {
  switch (kind) {
    case 'ping':
      return { kind, sequence: r.u32(), to: readNodeId(r) }
    case 'ping-request':
      return { kind, sequence: r.u32(), target: readNodeId(r), address: readAddress(r) }
    case 'ack':
    case 'nack':
      return { kind, sequence: r.u32() }
    case 'gossip':
      return { kind }
    case 'refused':
      return { kind, refused: readLife(r), boot: r.u32() }
    case undefined:
      throw new Truncated('a packet of an unknown kind')
    default:
      return unreachable(kind)
  }
}

// The parts that packets and syncs are made of. Reading throws Truncated for anything that was not written by the functions
// beside it: never another error, and never more memory than the bytes can account for.
//
//   id       16 bytes                       name      u8 length (at most 64), UTF-8
//   state    u8: 0 alive, 1 suspect,        address  u8 length (at most 253), UTF-8 host │ u16 port
//            2 dead, 3 left
//
//   cluster  id │ u64 founded │ u16 shards │ bool lone
//   life     u32 boot │ u32 nonce
//   update   id node │ life │ u64 incarnation │ state │ profile │ u8 count (at most 3, 0 unless suspect), ids of suspecters
//   profile  name │ address cluster │ beside client │ beside data │ name host label │ name rack label │ u64 capacity │ u64 load
//   beside   an address: bool whether the host is that of cluster, as it mostly is; else the host │ u16 port
//   hint     u32 shard │ u64 term │ id leader

import type { Address } from '../../base/address.ts'
import { fromUtf8, utf8 } from '../../base/bytes.ts'
import { type ByteReader, type ByteWriter, Truncated } from '../../base/cursor.ts'
import { ID_BYTES, readClusterId, readNodeId, writeId } from '../../model/id-bytes.ts'
import { isShardCount } from '../../model/shards.ts'
import {
  HOST_BYTES_MAX,
  INCARNATION_MAX,
  type Life,
  MEMBER_STATES,
  NAME_BYTES_MAX,
  type NamedCluster,
  type Profile,
  SHARDS_MAX,
  type ShardHint,
  SUSPECTERS_MAX,
  type Update,
} from '../../model/swim.ts'

export const CLUSTER_BYTES: number = ID_BYTES + 8 + 2 + 1
export const LIFE_BYTES = 8
export const HINT_BYTES: number = 4 + 8 + ID_BYTES
/** With empty texts. */
const PROFILE_BYTES_MIN = 1 + 3 + 3 + 3 + 1 + 1 + 8 + 8
export const UPDATE_BYTES_MIN: number = ID_BYTES + LIFE_BYTES + 8 + 1 + PROFILE_BYTES_MIN + 1

/** With texts as long as they may be, and suspecters as many. */
export const UPDATE_BYTES_MAX: number =
  UPDATE_BYTES_MIN + 3 * NAME_BYTES_MAX + 3 * HOST_BYTES_MAX + 2 + SUSPECTERS_MAX * ID_BYTES

export function updateBytes({ member, suspectedBy }: Update): number {
  const { name, cluster, client, data, hostLabel, rackLabel } = member.profile
  let texts = besideBytes(client, cluster) + besideBytes(data, cluster)
  for (const text of [name, cluster.host, hostLabel, rackLabel]) {
    texts += utf8(text).length
  }
  return UPDATE_BYTES_MIN + texts + ID_BYTES * suspectedBy.length
}

export function addressBytes({ host }: Address): number {
  return 3 + utf8(host).length
}

function writeText(w: ByteWriter, text: string, most: number): void {
  const bytes = utf8(text)
  if (bytes.length > most) throw new RangeError(`${text} is longer than ${most} bytes`)
  w.u8(bytes.length).raw(bytes)
}
function readText(r: ByteReader, most: number): string {
  const length = r.u8()
  if (length > most) throw new Truncated(`a text of ${length} bytes, of at most ${most}`)
  const bytes = r.raw(length)
  try {
    return fromUtf8(bytes)
  } catch (cause) {
    throw new Truncated('a text is not UTF-8', { cause })
  }
}

export function writeCluster(w: ByteWriter, { id, foundedMs, shards, lone }: NamedCluster): void {
  writeId(w, id)
  w.i64(foundedMs).u16(shards).bool(lone)
}
export function readCluster(r: ByteReader): NamedCluster {
  const id = readClusterId(r)
  const foundedMs = r.u53()
  const shards = r.u16()
  if (!isShardCount(shards)) throw new Truncated(`${shards} shards: not a power of two`)
  return { id, foundedMs, shards, lone: r.bool() }
}

export function writeLife(w: ByteWriter, { boot, nonce }: Life): void {
  w.u32(boot).u32(nonce)
}
export function readLife(r: ByteReader): Life {
  return { boot: r.u32(), nonce: r.u32() }
}

export function writeAddress(w: ByteWriter, { host, port }: Address): void {
  writeText(w, host, HOST_BYTES_MAX)
  w.u16(port)
}
export function readAddress(r: ByteReader): Address {
  return { host: readText(r, HOST_BYTES_MAX), port: r.u16() }
}

function writeBeside(w: ByteWriter, { host, port }: Address, other: Address): void {
  const same = host === other.host
  w.bool(same)
  if (!same) writeText(w, host, HOST_BYTES_MAX)
  w.u16(port)
}
function readBeside(r: ByteReader, other: Address): Address {
  const host = r.bool() ? undefined : readText(r, HOST_BYTES_MAX)
  if (host === other.host) throw new Truncated(`the host ${host} is told twice`)
  return { host: host ?? other.host, port: r.u16() }
}
/** More than with the same host. */
function besideBytes({ host }: Address, other: Address): number {
  return host === other.host ? 0 : 1 + utf8(host).length
}

function writeProfile(w: ByteWriter, profile: Profile): void {
  writeText(w, profile.name, NAME_BYTES_MAX)
  writeAddress(w, profile.cluster)
  writeBeside(w, profile.client, profile.cluster)
  writeBeside(w, profile.data, profile.cluster)
  writeText(w, profile.hostLabel, NAME_BYTES_MAX)
  writeText(w, profile.rackLabel, NAME_BYTES_MAX)
  w.i64(profile.capacityBytes).i64(profile.loadBytes)
}
function readProfile(r: ByteReader): Profile {
  const name = readText(r, NAME_BYTES_MAX)
  const cluster = readAddress(r)
  return {
    name,
    cluster,
    client: readBeside(r, cluster),
    data: readBeside(r, cluster),
    hostLabel: readText(r, NAME_BYTES_MAX),
    rackLabel: readText(r, NAME_BYTES_MAX),
    capacityBytes: r.u53(),
    loadBytes: r.u53(),
  }
}

export function writeUpdate(w: ByteWriter, { member, suspectedBy }: Update): void {
  writeId(w, member.node)
  writeLife(w, member)
  w.i64(member.incarnation).u8(MEMBER_STATES.indexOf(member.state))
  writeProfile(w, member.profile)
  w.u8(suspectedBy.length)
  for (const node of suspectedBy) writeId(w, node)
}
export function readUpdate(r: ByteReader): Update {
  const node = readNodeId(r)
  const life = readLife(r)
  const incarnation = r.u53()
  if (incarnation > INCARNATION_MAX) throw new Truncated(`incarnation ${incarnation}`)
  const code = r.u8()
  const state = MEMBER_STATES[code]
  if (state === undefined) throw new Truncated(`state ${code} of a member`)
  const profile = readProfile(r)
  const count = r.u8()
  if (count > (state === 'suspect' ? SUSPECTERS_MAX : 0)) {
    throw new Truncated(`${count} suspecters of a member that is ${state}`)
  }
  const suspectedBy = Array.from({ length: count }, () => readNodeId(r))
  return { member: { node, ...life, incarnation, state, profile }, suspectedBy }
}

export function writeHint(w: ByteWriter, { shard, term, leader }: ShardHint): void {
  w.u32(shard).i64(term)
  writeId(w, leader)
}
export function readHint(r: ByteReader): ShardHint {
  const shard = r.u32()
  if (shard >= SHARDS_MAX) throw new Truncated(`shard ${shard}, of at most ${SHARDS_MAX}`)
  return { shard, term: r.u53(), leader: readNodeId(r) }
}

// Which shard owns a topic. The names of topics are hashed to [0, 2^32), which the shards divide into equal arcs. A topic's id
// begins with the hash of its name, so that the owner is found by name and by id alike, without a lookup.
//
//   topic id   u32 xxh32(name) │ 12 random bytes

import { concatBytes, fromHex, getU32, putU32, toHex, utf8 } from '../base/bytes.ts'
import { xxh32 } from '../base/checksum.ts'
import { type TopicId, topicId } from './ids.ts'
import { SHARDS_MAX } from './swim.ts'

/** Owns what belongs to the whole cluster, beside topics. */
export const CLUSTER_SHARD = 0
/** Of a topic id, after the hash of its name. */
export const TOPIC_ID_RANDOM_BYTES = 12

export function isShardCount(count: number): boolean {
  return Number.isInteger(Math.log2(count)) && count >= 1 && count <= SHARDS_MAX
}

/** `shards`: a power of two. */
export function shardOfName(name: string, shards: number): number {
  return arcOf(xxh32(utf8(name)), shards)
}

export function shardOfTopic(id: TopicId, shards: number): number {
  return arcOf(getU32(fromHex(id.slice(0, 8)), 0), shards)
}

/** `random`: TOPIC_ID_RANDOM_BYTES fresh ones, so that a topic that is made again has another id. */
export function newTopicId(name: string, random: Uint8Array): TopicId {
  const hash = new Uint8Array(4)
  putU32(hash, 0, xxh32(utf8(name)))
  return topicId(toHex(concatBytes([hash, random])))
}

function arcOf(hash: number, shards: number): number {
  return Math.floor((hash / 2 ** 32) * shards)
}

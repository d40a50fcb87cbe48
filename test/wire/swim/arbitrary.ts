// Any news, any packet and any state that may be written.

import fc from 'fast-check'
import type { Address } from '../../../src/base/address.ts'
import { toHex } from '../../../src/base/bytes.ts'
import { clusterId, type NodeId, nodeId } from '../../../src/model/ids.ts'
import {
  HOST_BYTES_MAX,
  INCARNATION_MAX,
  type Life,
  NAME_BYTES_MAX,
  type NamedCluster,
  SHARDS_MAX,
  type ShardHint,
  type SyncState,
  type Update,
} from '../../../src/model/swim.ts'

const id = fc.uint8Array({ minLength: 16, maxLength: 16 }).map(toHex)
export const node: fc.Arbitrary<NodeId> = id.map(nodeId)
const u32 = fc.nat(0xffff_ffff)

function text(most: number): fc.Arbitrary<string> {
  const plain = fc.string({ maxLength: most })
  const wide = fc.string({ maxLength: Math.floor(most / 4), unit: 'grapheme' })
  return fc.oneof(plain, wide).filter((value) => Buffer.byteLength(value) <= most)
}

export const address: fc.Arbitrary<Address> = fc.record({
  host: text(HOST_BYTES_MAX),
  port: fc.nat(0xffff),
})
export const life: fc.Arbitrary<Life> = fc.record({ boot: u32, nonce: u32 })
export const cluster: fc.Arbitrary<NamedCluster> = fc.record({
  id: id.map(clusterId),
  foundedMs: fc.maxSafeNat(),
  shards: fc.nat(Math.log2(SHARDS_MAX)).map((power) => 2 ** power),
  lone: fc.boolean(),
})

const profile = fc
  .record({
    name: text(NAME_BYTES_MAX),
    cluster: address,
    client: address,
    data: address,
    hostLabel: text(NAME_BYTES_MAX),
    rackLabel: text(NAME_BYTES_MAX),
    capacityBytes: fc.maxSafeNat(),
    loadBytes: fc.maxSafeNat(),
    oneHost: fc.boolean(),
  })
  .map(({ oneHost, ...one }) => {
    const { host } = one.cluster
    return oneHost ? { ...one, client: { ...one.client, host }, data: { ...one.data, host } } : one
  })

const member = fc.record({
  node,
  boot: u32,
  nonce: u32,
  incarnation: fc.maxSafeNat().map((n) => n % (INCARNATION_MAX + 1)),
  state: fc.constantFrom('alive', 'suspect', 'dead', 'left'),
  profile,
})

export const update: fc.Arbitrary<Update> = fc
  .record({ member, by: fc.array(node, { maxLength: 3 }) })
  .map(({ member: about, by }) => ({
    member: about,
    suspectedBy: about.state === 'suspect' ? by : [],
  }))

export const hint: fc.Arbitrary<ShardHint> = fc.record({
  shard: fc.nat(SHARDS_MAX - 1),
  term: fc.maxSafeNat(),
  leader: node,
})

export const state: fc.Arbitrary<SyncState> = fc
  .record({
    from: node,
    life,
    updates: fc.array(update, { maxLength: 20 }),
    hints: fc.array(hint, { maxLength: 20 }),
  })
  .map(({ life: one, ...rest }) => ({ ...rest, ...one }))

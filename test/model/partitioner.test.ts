import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { murmur2, partitionOf } from '../../src/model/partitioner.ts'

// The pairs that Apache Kafka's own tests hold its partitioner to.
const KNOWN: readonly (readonly [string, number])[] = [
  ['21', -973_932_308],
  ['foobar', -790_332_482],
  ['a-little-bit-long-string', -985_981_536],
  ['a-little-bit-longer-string', -1_486_304_829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58_897_971],
  ['abc', 479_470_107],
]

it('murmur2 gives what Kafka gives', () => {
  for (const [key, hash] of KNOWN) assert.equal(murmur2(Buffer.from(key)), hash, key)
})

it('every key has one partition, and it exists', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.integer({ min: 1, max: 100_000 }), (key, partitions) => {
      const partition = partitionOf(key, partitions)
      assert.ok(Number.isInteger(partition) && partition >= 0 && partition < partitions)
      assert.equal(partitionOf(new Uint8Array(key), partitions), partition)
    }),
  )
})

// partition(key) = (murmur2(key) & 0x7fffffff) mod P, as Kafka's default partitioner has it, so that a key goes to
// one partition whichever client wrote it. murmur2 is Austin Appleby's 32-bit MurmurHash2 with Kafka's seed.

const SEED = 0x9747b28c
const M = 0x5bd1e995

export function murmur2(key: Uint8Array): number {
  const length = key.length
  let h = SEED ^ length
  let i = 0
  for (; i + 4 <= length; i += 4) {
    let k =
      (key[i] as number) |
      ((key[i + 1] as number) << 8) |
      ((key[i + 2] as number) << 16) |
      ((key[i + 3] as number) << 24)
    k = Math.imul(k, M)
    k ^= k >>> 24
    k = Math.imul(k, M)
    h = Math.imul(h, M) ^ k
  }
  const rest = length - i
  if (rest === 3) h ^= (key[i + 2] as number) << 16
  if (rest >= 2) h ^= (key[i + 1] as number) << 8
  if (rest >= 1) {
    h ^= key[i] as number
    h = Math.imul(h, M)
  }
  h ^= h >>> 13
  h = Math.imul(h, M)
  return h ^ (h >>> 15)
}

export function partitionOf(key: Uint8Array, partitions: number): number {
  return (murmur2(key) & 0x7fffffff) % partitions
}

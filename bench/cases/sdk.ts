// sdk: batches encoded and decoded, with and without compression, no network.

import type { Codec } from '../../src/base/codec.ts'
import { nodeCompute } from '../../src/io/compute/node-compute.ts'
import { readRecords, recordsSection } from '../../src/model/batch/decode.ts'
import { BatchBuilder, NOT_IDEMPOTENT } from '../../src/model/batch/encode.ts'
import type { Result } from '../report.ts'

const RECORDS = 1000
const BYTES_MAX = 64 * 1024 * 1024

export async function sdk(_dir: string, seconds: number): Promise<Result[]> {
  const results: Result[] = []
  for (const bytes of [100, 1024]) {
    for (const codec of ['none', 'lz4', 'zstd'] as const) {
      const values = Array.from({ length: RECORDS }, (_, i) => textOf(i, bytes))
      const each = (seconds * 1000) / 4
      const encoded = await rate(each, () => encode(values, codec))
      const batch = await encode(values, codec)
      const decoded = await rate(each, () => decode(batch, codec))
      const what = `${bytes} B, ${codec}`
      results.push({ name: 'sdk', case: `encode ${what}`, unit: 'records/s', value: encoded })
      results.push({ name: 'sdk', case: `decode ${what}`, unit: 'records/s', value: decoded })
    }
  }
  return results
}

/** Text with some repetition, so that codecs have something to do. */
function textOf(number: number, bytes: number): Uint8Array {
  return Buffer.from(
    `order=${number};account=${(number * 7919) % 1000};amount=${number * 31};`.repeat(40),
  ).subarray(0, bytes)
}

async function encode(values: readonly Uint8Array[], codec: Codec): Promise<Uint8Array> {
  const builder = new BatchBuilder()
  for (const value of values) builder.append(null, value, [], 1_700_000_000_000)
  if (codec === 'none') return builder.finish(NOT_IDEMPOTENT)
  const compressedRecords = await nodeCompute.compress(codec, builder.records())
  return builder.finish({ ...NOT_IDEMPOTENT, codec, compressedRecords })
}

async function decode(batch: Uint8Array, codec: Codec): Promise<number> {
  const records =
    codec === 'none'
      ? undefined
      : await nodeCompute.decompress(codec, recordsSection(batch), BYTES_MAX)
  let bytes = 0
  for (const record of readRecords(batch, records)) bytes += record.value?.length ?? 0
  return bytes
}

async function rate(ms: number, work: () => Promise<unknown>): Promise<number> {
  for (let i = 0; i < 20; i++) await work()
  const began = performance.now()
  let rounds = 0
  while (performance.now() - began < ms) {
    await work()
    rounds++
  }
  return (rounds * RECORDS) / ((performance.now() - began) / 1000)
}

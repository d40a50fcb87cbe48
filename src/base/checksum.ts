// Checksums and hashes from @node-rs (kept by the napi-rs team; native, no download of its own).

import { crc32c as native } from '@node-rs/crc32'
import { xxh32 as nativeXxh32 } from '@node-rs/xxhash'

/** A call into native code and the view it needs cost more than so many bytes by table (measured: even at 256). */
const BY_TABLE_BYTES = 256

/** CRC32C (Castagnoli), RFC 3720; `seed` continues an earlier checksum. */
export function crc32c(bytes: Uint8Array, seed: number = 0): number {
  return crc32cOf(bytes, 0, bytes.length, seed)
}

/** The same over bytes [from, to), without making a view of them. */
export function crc32cOf(bytes: Uint8Array, from: number, to: number, seed: number = 0): number {
  if (to - from > BY_TABLE_BYTES) return native(bytes.subarray(from, to), seed)
  return byTable(bytes, from, to, seed)
}

// Eight tables take eight bytes a step ("slicing by 8", Kounavis and Berry 2005). T0 is the plain table; T[k][b] is
// what byte b does to the checksum when k more bytes follow it.
const POLYNOMIAL = 0x82f63b78
const [T0, T1, T2, T3, T4, T5, T6, T7] = tables()

type Table = Int32Array
type Tables = readonly [Table, Table, Table, Table, Table, Table, Table, Table]

function tables(): Tables {
  const first = new Int32Array(256)
  for (let i = 0; i < 256; i++) {
    let crc = i
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ POLYNOMIAL
    first[i] = crc
  }
  const all = [first]
  for (let k = 1; k < 8; k++) {
    const before = all[k - 1] as Table
    all.push(before.map((crc) => (first[crc & 255] as number) ^ (crc >>> 8)))
  }
  return all as unknown as Tables
}

function byTable(b: Uint8Array, from: number, to: number, seed: number): number {
  let crc = ~seed
  let at = from
  for (; at + 8 <= to; at += 8) {
    const low =
      crc ^
      ((b[at] as number) |
        ((b[at + 1] as number) << 8) |
        ((b[at + 2] as number) << 16) |
        ((b[at + 3] as number) << 24))
    crc =
      (T7[low & 255] as number) ^
      (T6[(low >>> 8) & 255] as number) ^
      (T5[(low >>> 16) & 255] as number) ^
      (T4[low >>> 24] as number) ^
      (T3[b[at + 4] as number] as number) ^
      (T2[b[at + 5] as number] as number) ^
      (T1[b[at + 6] as number] as number) ^
      (T0[b[at + 7] as number] as number)
  }
  for (; at < to; at++) crc = (T0[(crc ^ (b[at] as number)) & 255] as number) ^ (crc >>> 8)
  return ~crc >>> 0
}

/** xxh32 with seed 0: the hash of key-span filters. */
export function xxh32(bytes: Uint8Array): number {
  return nativeXxh32(bytes, 0)
}

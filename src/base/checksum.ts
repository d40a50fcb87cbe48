// Checksums and hashes from @node-rs (kept by the napi-rs team; native, no download of its own).

import { crc32c as native } from '@node-rs/crc32'
import { xxh32 as nativeXxh32 } from '@node-rs/xxhash'

/** CRC32C (Castagnoli), RFC 3720; `seed` continues an earlier checksum. */
export function crc32c(bytes: Uint8Array, seed: number = 0): number {
  return native(bytes, seed)
}

/** xxh32 with seed 0: the hash of key-span filters. */
export function xxh32(bytes: Uint8Array): number {
  return nativeXxh32(bytes, 0)
}

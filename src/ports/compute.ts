// Heavy computation, away from the event loop where that pays: compression. Password hashing joins it later.

import type { Codec } from '../base/codec.ts'

export interface Compute {
  /** In the framing that Kafka clients expect of each codec (lz4: frame format; snappy: xerial blocks). */
  compress(codec: Codec, bytes: Uint8Array): Promise<Uint8Array>
  /** Rejects when the bytes are not of that codec or would grow beyond `maxBytes`. */
  decompress(codec: Codec, bytes: Uint8Array, maxBytes: number): Promise<Uint8Array>
}

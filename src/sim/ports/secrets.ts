// Secrets without cryptography: checksums stand where hashes do, and a generator's numbers where a cipher does. It keeps
// nothing from anybody who wants to know, but what a broker can see is the same: bytes that say nothing, and changed bytes,
// other keys and other numbers that do not open.

import { concatBytes, EMPTY, equalBytes, putI64, putU32, utf8 } from '../../base/bytes.ts'
import { xxh32 } from '../../base/checksum.ts'
import { prng } from '../../base/prng.ts'
import type { Secrets } from '../../ports/secrets.ts'

const KEY_BYTES = 32
const TAG_BYTES = 16

export const simSecrets: Secrets = {
  derive: (secret, salt, label) => hash(KEY_BYTES, [lengthOf(secret), secret, salt, utf8(label)]),

  seal(key, number, parts) {
    const plain = concatBytes(parts)
    return [crossed(key, number, plain), hash(TAG_BYTES, [key, numberBytes(number), plain])]
  },

  open(key, number, sealed) {
    const end = sealed.length - TAG_BYTES
    if (end < 0) return undefined
    const plain = crossed(key, number, sealed.subarray(0, end))
    const tag = hash(TAG_BYTES, [key, numberBytes(number), plain])
    return equalBytes(tag, sealed.subarray(end)) ? plain : undefined
  },
}

/** Crossed twice it is what it was. */
function crossed(key: Uint8Array, number: number, bytes: Uint8Array): Uint8Array {
  const stream = prng(xxh32(concatBytes([key, numberBytes(number)])))
  return bytes.map((byte) => byte ^ (stream.u32() & 0xff))
}

function hash(length: number, parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(length)
  for (let at = 0; at < length; at += 4) {
    putU32(out, at, xxh32(concatBytes([lengthOf(EMPTY, at), ...parts])))
  }
  return out
}

function lengthOf(bytes: Uint8Array, more: number = 0): Uint8Array {
  return numberBytes(bytes.length + more)
}

function numberBytes(number: number): Uint8Array {
  const bytes = new Uint8Array(8)
  putI64(bytes, 0, number)
  return bytes
}

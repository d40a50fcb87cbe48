// Secrets by node:crypto. The number is the nonce of AES-GCM: 12 bytes, the last eight count.

import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import { putI64 } from '../../base/bytes.ts'
import type { Secrets } from '../../ports/secrets.ts'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const NUMBER_AT = 4
const TAG_BYTES = 16
/** Node would take a shorter tag for a good one unless it is told how long tags are. */
const TAG = { authTagLength: TAG_BYTES }

export const nodeSecrets: Secrets = {
  derive: (secret, salt, label) =>
    new Uint8Array(hkdfSync('sha256', secret, salt, label, KEY_BYTES)),

  seal(key, number, parts) {
    const cipher = createCipheriv(CIPHER, key, nonceOf(number), TAG)
    const sealed: Uint8Array[] = parts.map((part) => cipher.update(part))
    cipher.final()
    sealed.push(cipher.getAuthTag())
    return sealed
  },

  open(key, number, sealed) {
    const end = sealed.length - TAG_BYTES
    if (end < 0) return undefined
    const decipher = createDecipheriv(CIPHER, key, nonceOf(number), TAG)
    decipher.setAuthTag(sealed.subarray(end))
    const plain = decipher.update(sealed.subarray(0, end))
    try {
      decipher.final()
    } catch {
      return undefined
    }
    return plain
  },
}

function nonceOf(number: number): Uint8Array {
  const nonce = new Uint8Array(NONCE_BYTES)
  putI64(nonce, NUMBER_AT, number)
  return nonce
}

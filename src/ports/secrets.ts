// What only those can do who share a secret. Synchronous: inputs are packets and records of a connection, which are small.

export interface Secrets {
  /** 32 bytes that only who has `secret` can make, others for each salt and each label: HKDF-SHA256. */
  derive(secret: Uint8Array, salt: Uint8Array, label: string): Uint8Array
  /**
   * The parts, encrypted one behind the other, and at the end a tag of 16 bytes: AES-256-GCM. Two seals under one key must
   * never have the same number.
   */
  seal(key: Uint8Array, number: number, parts: readonly Uint8Array[]): readonly Uint8Array[]
  /** What was sealed under this key and this number; undefined for any other bytes. */
  open(key: Uint8Array, number: number, sealed: Uint8Array): Uint8Array | undefined
}

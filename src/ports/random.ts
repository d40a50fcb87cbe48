export interface Random {
  /** Unpredictable bytes: identities, salts, tokens. */
  bytes(length: number): Uint8Array
  /** A number in [0, 1), for jitter and placement. */
  float(): number
}

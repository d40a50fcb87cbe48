// sfc32 (Chris Doty-Humphrey's small fast counting generator): 128 bits of state, seeded by splitmix32. For
// simulation and for choices that need no secrecy; identities come from ports/random.ts.

export interface Prng {
  /** A whole number in [0, 2^32). */
  u32(): number
  /** A number in [0, 1). */
  float(): number
  /** A whole number in [0, below). */
  below(below: number): number
  bytes(length: number): Uint8Array
}

export function prng(seed: number): Prng {
  let s = seed | 0
  const split = (): number => {
    s = (s + 0x9e3779b9) | 0
    let z = s ^ (s >>> 16)
    z = Math.imul(z, 0x21f0aaad)
    z ^= z >>> 15
    z = Math.imul(z, 0x735a2d97)
    return z ^ (z >>> 15)
  }
  let a = split()
  let b = split()
  let c = split()
  let counter = 1
  const u32 = (): number => {
    const t = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return t >>> 0
  }
  for (let i = 0; i < 12; i++) u32()
  const float = (): number => u32() / 0x1_0000_0000
  return {
    u32,
    float,
    below: (below) => Math.floor(float() * below),
    bytes: (length) => {
      const bytes = new Uint8Array(length)
      for (let i = 0; i < length; i++) bytes[i] = u32()
      return bytes
    },
  }
}

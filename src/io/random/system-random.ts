// Chance from the operating system for what must not be guessed, and from the engine for jitter.

import { randomFillSync } from 'node:crypto'
import type { Random } from '../../ports/random.ts'

export function systemRandom(): Random {
  return {
    bytes: (length) => randomFillSync(new Uint8Array(length)),
    float: () => Math.random(),
  }
}

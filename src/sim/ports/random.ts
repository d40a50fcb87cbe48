// Chance that the seed decides.

import type { Prng } from '../../base/prng.ts'
import type { Random } from '../../ports/random.ts'

export function simRandom(source: Prng): Random {
  return { bytes: (length) => source.bytes(length), float: () => source.float() }
}

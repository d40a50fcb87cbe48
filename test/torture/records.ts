// A record that proves itself: its value names its producer and number, and its filler follows from them, so that any
// reader can tell whether exactly these bytes were ever sent.

import { prng } from '../../src/base/prng.ts'

const FILLER_MAX = 4096

export function makeValue(seed: number, producer: number, number: number): Buffer {
  const random = prng(
    (seed ^ Math.imul(producer + 1, 0x9e3779b1) ^ Math.imul(number, 0x85ebca77)) | 0,
  )
  const filler = random.bytes(random.below(8) === 0 ? random.below(FILLER_MAX) : random.below(400))
  return Buffer.concat([Buffer.from(`${producer}:${number}:`), filler])
}

/** Whose record it is; undefined when these bytes were never sent by anyone. */
export function readValue(
  seed: number,
  value: Uint8Array,
): { producer: number; number: number } | undefined {
  const match = /^(\d+):(\d+):/.exec(Buffer.from(value.subarray(0, 40)).toString('latin1'))
  if (match === null) return undefined
  const [producer, number] = [Number(match[1]), Number(match[2])]
  return makeValue(seed, producer, number).equals(value) ? { producer, number } : undefined
}

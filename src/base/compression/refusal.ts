/** Compressed bytes that are not taken: not of their codec, cut off, or larger inside than allowed. */
export class CompressionRefused extends Error {
  override readonly name: string = 'CompressionRefused'
}

export function refuseGrowth(length: number, maxBytes: number): CompressionRefused {
  return new CompressionRefused(
    `they grow to at least ${length} bytes, and at most ${maxBytes} are taken`,
  )
}

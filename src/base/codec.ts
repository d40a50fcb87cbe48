/** The compression codecs, by the name people write; the index is the number in a batch's attributes. */
export const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type Codec = (typeof CODECS)[number]

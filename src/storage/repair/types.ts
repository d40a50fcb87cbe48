// What `repair` is told, what it finds, and the words for it.

import type { SegmentKey } from '../../model/segment-key.ts'

/** What the metadata knows of a segment. */
export interface SegmentFacts {
  readonly key: SegmentKey
  readonly topicName: string
  readonly firstPartition: number
  /** By partition, counted from the first. */
  readonly firstOffsets: readonly number[]
  /** Of a sealed segment: its number of entries, and where each partition goes on behind it. */
  readonly endEntry: number | undefined
  readonly endOffsets: readonly number[] | undefined
  /** Of an open segment: under which its range state was staged; empty: none was. */
  readonly token: string
}

/** Offsets [from, end) of a partition. */
export interface LostOffsets {
  readonly partition: number
  readonly from: number
  readonly end: number
}

/** Something that is not there any more, or not known to be. */
export interface Loss {
  /** Undefined: it is not one segment's. */
  readonly facts: SegmentFacts | undefined
  /** Relative to the data directory. */
  readonly file: string
  readonly position: number | undefined
  readonly what: string
  /** Entries [first, end) of the segment, where it is known which. */
  readonly entries: { readonly first: number; readonly end: number } | undefined
  readonly offsets: readonly LostOffsets[]
  readonly records: number
}

// What one broker tells another about the entries of a segment. A connection has a dialer, who leads, holds or asks, and an
// acceptor, who follows, stores or has; so a message says by its kind which way it goes.
//
//   dialer -> acceptor    open, append, watermarks, stage, stage-dropped, fetch
//   acceptor -> dialer    opened, acks, refuse, stage-stored, fetched
//
// A channel is a segment and a follower of it, by a number that its leader chose when it opened it on this connection: what
// is said again and again need not name the segment. Channels end with the connection.

import type { Entry, SegmentPlace } from '../../model/entry.ts'
import type { SegmentKey } from '../../model/segment-key.ts'

/** The sender leads the segment, and means the receiver to follow. Its start is the connection's. */
export interface Open {
  readonly kind: 'open'
  readonly channel: number
  readonly key: SegmentKey
  /** Under which the segment was staged. */
  readonly token: string
  readonly end: number
  readonly highWatermark: number
}

export type OpenedResult =
  /** From `next` on it takes entries; below `durableEnd` it has them on its disk. */
  | { readonly kind: 'ready'; readonly next: number; readonly durableEnd: number }
  /** It knows nothing of it yet: to be opened again in a while. */
  | { readonly kind: 'not-yet' }
  | { readonly kind: 'refused'; readonly why: string }

export interface Opened {
  readonly kind: 'opened'
  readonly channel: number
  readonly result: OpenedResult
}

/** Entries of one segment, whose checksums were found right when they were read. */
export interface Entries {
  /** Undefined when there are none. */
  readonly place: SegmentPlace | undefined
  readonly entries: readonly Entry[]
}

export interface Append extends Entries {
  readonly kind: 'append'
  readonly channel: number
  readonly highWatermark: number
}

interface Acked {
  readonly channel: number
  /** All entries below are durable. */
  readonly end: number
}

export interface Acks {
  readonly kind: 'acks'
  readonly of: readonly Acked[]
}

interface Watermark {
  readonly channel: number
  readonly highWatermark: number
}

/** When nothing else carries them. */
export interface Watermarks {
  readonly kind: 'watermarks'
  readonly of: readonly Watermark[]
}

/** The follower takes neither this entry nor any behind it. */
export interface Refuse {
  readonly kind: 'refuse'
  readonly channel: number
  readonly entryNumber: number
  readonly why: string
}

/**
 * A part of what the receiver is to store before the successor of a segment is committed. Parts of one order come in their
 * order, first those of the state; each repeats what the whole is, so that it can be checked before memory is taken.
 */
export interface Stage extends Entries {
  readonly kind: 'stage'
  /** Chosen by the sender, told back in `stage-stored`. */
  readonly order: number
  /** The successor. */
  readonly key: SegmentKey
  readonly token: string
  /** The predecessor's entries from `tailFrom` to below `end` go along. */
  readonly tailFrom: number
  readonly end: number
  readonly stateBytes: number
  /** Of the bytes of the state in this part. */
  readonly stateOffset: number
  readonly state: Uint8Array
  readonly last: boolean
}

export interface StageStored {
  readonly kind: 'stage-stored'
  readonly order: number
  /** Undefined: it is durable. */
  readonly failed: string | undefined
}

/** The sender sends nothing more of it: what came may go. */
export interface StageDropped {
  readonly kind: 'stage-dropped'
  readonly order: number
}

/** Entries for a copy that lacks them. */
export interface Fetch {
  readonly kind: 'fetch'
  /** Chosen by the sender, told back in `fetched`. */
  readonly id: number
  readonly key: SegmentKey
  /** Of a tail that is kept under this token; undefined: of the segment itself. */
  readonly token: string | undefined
  readonly from: number
  /** Not this one. */
  readonly below: number
  /** No more than that, but for the first entry. */
  readonly bytesMax: number
}

/** One of several parts, in order. */
export interface Fetched extends Entries {
  readonly kind: 'fetched'
  readonly id: number
  /** Why there are no more; undefined: that was all that was asked for, or had room, or is there. */
  readonly failed: string | undefined
  readonly last: boolean
}

/** What carries nothing large. */
export type DataWord =
  | Open
  | Opened
  | Acks
  | Watermarks
  | Refuse
  | StageStored
  | StageDropped
  | Fetch
/** What carries entries, or a state. */
export type DataLoad = Append | Stage | Fetched
export type DataMessage = DataWord | DataLoad

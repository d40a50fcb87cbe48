// Bounds that are part of the formats and protocols. What an operator may change is in the configuration instead.

import { assert } from '../base/assert.ts'
import { MIB } from './policy.ts'

/** The largest native frame, length field not counted: the largest batch and room for what goes round it. */
export const FRAME_BYTES_MAX: number = 72 * MIB
/** The largest max_message_bytes that a topic may have. */
export const BATCH_BYTES_MAX: number = 64 * MIB
/** Frames before the hello are small. */
export const HELLO_BYTES_MAX = 4096
export const REQUESTS_IN_FLIGHT_MAX = 10_000
/** One group commit takes no more than this. */
export const WAL_GROUP_ENTRIES_MAX = 20_000
export const WAL_GROUP_BYTES_MAX: number = 10 * MIB
/** Batches that one producer may have in flight in one partition (PROTOCOLS §8). */
export const PRODUCER_WINDOW = 5

assert(FRAME_BYTES_MAX > BATCH_BYTES_MAX, 'a frame holds the largest batch that a policy may allow')

// A consumer's options with their defaults filled in and their bounds checked.

import { EastGuardError } from '../../base/errors.ts'
import { MIB } from '../../model/policy.ts'
import type { ConsumeFrom, ConsumerOptions, KeySpan } from '../api.ts'
import { whole } from '../producer/settings.ts'

export interface ConsumerSettings {
  readonly topic: string
  readonly partitions: readonly number[] | undefined
  readonly from: ConsumeFrom
  readonly stopAtEnd: boolean
  readonly keySpan: KeySpan | undefined
  readonly prefetchBytes: number
  readonly onOffsetOutOfRange: 'error' | 'earliest' | 'latest'
  readonly unavailableTimeoutMs: number
  readonly signal: AbortSignal | undefined
}

const HASH_MAX = 0xffff_ffff
/** Credit is a u32, and grants come on top of what is left. */
const PREFETCH_BYTES_MOST: number = 1024 * MIB

/** Throws INVALID_ARGUMENT. */
export function consumerSettings(options: ConsumerOptions): ConsumerSettings {
  const { topic, partitions, keySpan, signal } = options
  if (typeof topic !== 'string' || topic.length === 0) throw invalid('a consumer needs a topic')
  if (partitions !== undefined) {
    for (const partition of partitions) whole('a partition', partition, 0, HASH_MAX)
    if (partitions.length === 0) throw invalid('partitions is empty; leave it out to read all')
    if (new Set(partitions).size !== partitions.length) throw invalid('a partition is named twice')
  }
  if (keySpan !== undefined) {
    whole('keySpan.least', keySpan.least, 0, HASH_MAX)
    whole('keySpan.greatest', keySpan.greatest, keySpan.least, HASH_MAX)
  }
  const unavailableTimeoutMs = options.unavailableTimeoutMs ?? 120_000
  if (!(unavailableTimeoutMs >= 0)) {
    throw invalid(`unavailableTimeoutMs is ${unavailableTimeoutMs}; 0 or more is allowed`)
  }
  return {
    topic,
    partitions,
    from: checkedFrom(options.from ?? 'earliest'),
    stopAtEnd: options.stopAtEnd ?? false,
    keySpan,
    prefetchBytes: whole('prefetchBytes', options.prefetchBytes ?? 8 * MIB, 1, PREFETCH_BYTES_MOST),
    onOffsetOutOfRange: options.onOffsetOutOfRange ?? 'error',
    unavailableTimeoutMs,
    signal,
  }
}

function checkedFrom(from: ConsumeFrom): ConsumeFrom {
  if (from === 'earliest' || from === 'latest') return from
  if ('timestampMs' in from) whole('timestampMs', from.timestampMs, 0, Number.MAX_SAFE_INTEGER)
  else if ('offset' in from) whole('offset', from.offset, 0, Number.MAX_SAFE_INTEGER)
  else {
    for (const [partition, offset] of Object.entries(from.offsets)) {
      whole(`the offset of partition ${partition}`, offset, 0, Number.MAX_SAFE_INTEGER)
    }
  }
  return from
}

function invalid(message: string): EastGuardError {
  return new EastGuardError('INVALID_ARGUMENT', message)
}

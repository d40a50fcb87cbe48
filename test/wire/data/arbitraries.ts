// Arbitrary messages on the data port, as a broker might send them, with batches that are whole.

import fc from 'fast-check'
import { setBatchCrc } from '../../../src/model/batch/header.ts'
import { holeBatch } from '../../../src/model/batch/hole.ts'
import type { Entry, SegmentPlace } from '../../../src/model/entry.ts'
import { topicId } from '../../../src/model/ids.ts'
import { placeOfKey, type SegmentKey } from '../../../src/model/segment-key.ts'
import { encodeEntries } from '../../../src/wire/data/entries.ts'
import { appendFrame, fetchedFrame, stageFrame } from '../../../src/wire/data/load.ts'
import type { DataLoad, DataMessage, DataWord } from '../../../src/wire/data/types.ts'
import { wordFrame } from '../../../src/wire/data/word.ts'

const u32 = fc.nat(0xffff_ffff)
const u53 = fc.maxSafeNat()
const text = fc.string({ unit: 'binary', maxLength: 20 })
const optionalText = fc.option(text, { nil: undefined })

export const key: fc.Arbitrary<SegmentKey> = fc.record({
  topicId: fc.stringMatching(/^[0-9a-f]{32}$/).map(topicId),
  range: u32,
  segment: u53,
})

/** A whole batch of about so many bytes: a header, and behind it anything. */
export function batchOf(bytes: number, fill: number = 0): Uint8Array {
  const header = holeBatch(1)
  const batch = new Uint8Array(header.length + bytes).fill(fill)
  batch.set(header)
  new DataView(batch.buffer).setUint32(8, batch.length - 12)
  setBatchCrc(batch)
  return batch
}

export function entryOf(entryNumber: number, batchBytes: number): Entry {
  return {
    entryNumber,
    partition: entryNumber % 7,
    baseOffset: 3 * entryNumber,
    recordCount: 1,
    logTimeMs: 1_700_000_000_000 + entryNumber,
    highWatermark: entryNumber,
    leastKeyHash: 0,
    greatestKeyHash: 0xffff_ffff,
    batch: batchOf(batchBytes, entryNumber),
  }
}

const entry: fc.Arbitrary<Entry> = fc.record({
  entryNumber: u53,
  partition: u32,
  baseOffset: u53,
  recordCount: u32,
  logTimeMs: u53,
  highWatermark: u53,
  leastKeyHash: u32,
  greatestKeyHash: u32,
  batch: fc
    .tuple(fc.oneof(fc.nat(50), fc.nat(10_000)), fc.nat(255))
    .map(([bytes, fill]) => batchOf(bytes, fill)),
})

const entries = fc
  .tuple(key, fc.array(entry, { maxLength: 5 }))
  .map(([of, some]) => ({ place: some.length === 0 ? undefined : placeOfKey(of), entries: some }))

/** By kind, so that the compiler misses one that is forgotten. */
const WORDS: { readonly [K in DataWord['kind']]: fc.Arbitrary<Extract<DataWord, { kind: K }>> } = {
  open: fc.record({
    kind: fc.constant('open'),
    channel: u32,
    key,
    token: text,
    end: u53,
    highWatermark: u53,
  }),
  opened: fc.record({
    kind: fc.constant('opened'),
    channel: u32,
    result: fc.oneof(
      fc.record({ kind: fc.constant('ready' as const), next: u53, durableEnd: u53 }),
      fc.constant({ kind: 'not-yet' } as const),
      fc.record({ kind: fc.constant('refused' as const), why: text }),
    ),
  }),
  acks: fc.record({
    kind: fc.constant('acks'),
    of: fc.array(fc.record({ channel: u32, end: u53 }), { maxLength: 5 }),
  }),
  watermarks: fc.record({
    kind: fc.constant('watermarks'),
    of: fc.array(fc.record({ channel: u32, highWatermark: u53 }), { maxLength: 5 }),
  }),
  refuse: fc.record({ kind: fc.constant('refuse'), channel: u32, entryNumber: u53, why: text }),
  'stage-stored': fc.record({
    kind: fc.constant('stage-stored'),
    order: u53,
    failed: optionalText,
  }),
  'stage-dropped': fc.record({ kind: fc.constant('stage-dropped'), order: u53 }),
  fetch: fc.record({
    kind: fc.constant('fetch'),
    id: u53,
    key,
    token: optionalText,
    from: u53,
    below: u53,
    bytesMax: u32,
  }),
}

const LOADS: { readonly [K in DataLoad['kind']]: fc.Arbitrary<Extract<DataLoad, { kind: K }>> } = {
  append: entries.chain((some) =>
    fc.record({
      kind: fc.constant('append'),
      channel: u32,
      highWatermark: u53,
      place: fc.constant(some.place),
      entries: fc.constant(some.entries),
    }),
  ),
  stage: fc
    .tuple(entries, fc.uint8Array({ maxLength: 50 }), fc.nat(1000), fc.nat(1000), fc.nat(9))
    .chain(([some, state, stateOffset, tailFrom, more]) =>
      fc.record({
        kind: fc.constant('stage'),
        order: u53,
        key,
        token: text,
        tailFrom: fc.constant(tailFrom),
        end: fc.constant(tailFrom + more),
        stateBytes: fc.constant(stateOffset + state.length + more),
        stateOffset: fc.constant(stateOffset),
        state: fc.constant(state),
        last: fc.boolean(),
        place: fc.constant(some.place),
        entries: fc.constant(some.entries),
      }),
    ),
  fetched: entries.chain((some) =>
    fc.record({
      kind: fc.constant('fetched'),
      id: u53,
      failed: optionalText,
      last: fc.boolean(),
      place: fc.constant(some.place),
      entries: fc.constant(some.entries),
    }),
  ),
}

const word: fc.Arbitrary<DataWord> = fc.oneof(...Object.values(WORDS))
export const load: fc.Arbitrary<DataLoad> = fc.oneof(...Object.values(LOADS))
export const dataMessage: fc.Arbitrary<DataMessage> = fc.oneof(word, load)

const NOWHERE: SegmentPlace = { topicIdBytes: new Uint8Array(16), range: 0, segment: 0 }

/** The whole frame, length field and all. */
export function written(message: DataMessage): Uint8Array {
  return Buffer.concat(buffersOf(message))
}

function buffersOf(message: DataMessage): readonly Uint8Array[] {
  if (message.kind === 'append') return appendFrame(message, encoded(message))
  if (message.kind === 'stage') return stageFrame(message, encoded(message))
  if (message.kind === 'fetched') return fetchedFrame(message, encoded(message))
  return [wordFrame(message)]
}

function encoded({ place, entries: some }: DataLoad): ReturnType<typeof encodeEntries> {
  return encodeEntries(place ?? NOWHERE, some)
}

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Truncated } from '../../../src/base/cursor.ts'
import { placeOfKey } from '../../../src/model/segment-key.ts'
import { encodeEntries } from '../../../src/wire/data/entries.ts'
import { frameOf } from '../../../src/wire/data/frame.ts'
import { appendFrame, readDataMessage } from '../../../src/wire/data/load.ts'
import { plain } from '../native/messages.ts'
import { batchOf, dataMessage, entryOf, key, load, written } from './arbitraries.ts'

const LENGTH_BYTES = 4

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  const at = bit % (8 * bytes.length)
  const copy = bytes.slice()
  copy[at >> 3] = (copy[at >> 3] as number) ^ (1 << (at & 7))
  return copy
}

describe('a message on the data port', () => {
  it('comes back as it was written, behind its length', () => {
    const holds = fc.property(dataMessage, (message) => {
      const frame = written(message)
      assert.equal(Buffer.from(frame).readUInt32BE(0), frame.length - LENGTH_BYTES)
      assert.deepEqual(plain(readDataMessage(frame.subarray(LENGTH_BYTES))), plain(message))
    })
    fc.assert(holds, { numRuns: 500 })
  })

  it('is refused when the end is missing, wherever', () => {
    const holds = fc.property(dataMessage, fc.nat(), (message, cut) => {
      const frame = written(message).subarray(LENGTH_BYTES)
      assert.throws(() => readDataMessage(frame.subarray(0, cut % frame.length)), Truncated)
    })
    fc.assert(holds, { numRuns: 1000 })
  })

  it('is refused at every byte where the end is missing', () => {
    const frame = written({
      kind: 'fetched',
      id: 1,
      failed: undefined,
      last: false,
      place: placeOfKey({ topicId: 'a'.repeat(32) as never, range: 1, segment: 2 }),
      entries: [entryOf(5, 0), entryOf(6, 30)],
    }).subarray(LENGTH_BYTES)
    for (let length = 0; length < frame.length; length++) {
      assert.throws(() => readDataMessage(frame.subarray(0, length)), Truncated)
    }
  })

  it('is refused after any single bit flipped', () => {
    const holds = fc.property(dataMessage, fc.nat(), (message, bit) => {
      const frame = flipped(written(message).subarray(LENGTH_BYTES), bit)
      assert.throws(() => readDataMessage(frame), Truncated)
    })
    fc.assert(holds, { numRuns: 2000 })
  })

  it('is refused when something is behind it', () => {
    const holds = fc.property(dataMessage, fc.uint8Array({ minLength: 1 }), (message, more) => {
      const frame = Buffer.concat([written(message).subarray(LENGTH_BYTES), more])
      assert.throws(() => readDataMessage(frame), Truncated)
    })
    fc.assert(holds, { numRuns: 500 })
  })

  it('is read or refused as malformed, whatever the bytes', () => {
    const holds = fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.throws(() => readDataMessage(bytes), Truncated)
    })
    fc.assert(holds, { numRuns: 1000 })
  })

  it('with a right checksum around garbage is read or refused as malformed', () => {
    const holds = fc.property(
      fc.uint8Array({ maxLength: 100 }),
      dataMessage,
      fc.nat(0xffff_ffff),
      (bytes, { kind }, count) => {
        const given = { count, bytes: 0, pieces: [] }
        const [frame] = frameOf(kind, (w) => w.raw(bytes), given)
        try {
          readDataMessage((frame as Uint8Array).subarray(LENGTH_BYTES))
        } catch (error) {
          assert.ok(error instanceof Truncated, String(error))
        }
      },
    )
    fc.assert(holds, { numRuns: 2000 })
  })
})

describe('entries in a frame', () => {
  const at = placeOfKey({ topicId: 'a'.repeat(32) as never, range: 1, segment: 2 })
  const append = { channel: 1, highWatermark: 4 }

  it('are as many bytes as they say, large batches as they are and small ones copied', () => {
    const holds = fc.property(load, ({ entries, place }) => {
      const encoded = encodeEntries(place ?? at, entries)
      assert.equal(encoded.count, entries.length)
      assert.equal(
        encoded.pieces.reduce((sum, piece) => sum + piece.length, 0),
        encoded.bytes,
      )
      for (const { batch } of entries) {
        assert.equal(encoded.pieces.includes(batch), batch.length >= 4096)
      }
    })
    fc.assert(holds)
  })

  it('are refused when the batch is damaged and its envelope is not', () => {
    const entry = entryOf(3, 200)
    const batch = flipped(entry.batch, 8 * 100)
    const frame = appendFrame(append, encodeEntries(at, [{ ...entry, batch }]))
    const bytes = Buffer.concat(frame).subarray(LENGTH_BYTES)
    assert.throws(() => readDataMessage(bytes), /batch of entry 3 does not match/)
  })

  it('are refused when a batch says another length than its envelope', () => {
    const batch = batchOf(50)
    const longer = Buffer.concat([batch, new Uint8Array(3)])
    for (const wrong of [longer, batch.subarray(0, 40)]) {
      const frame = appendFrame(append, encodeEntries(at, [{ ...entryOf(3, 0), batch: wrong }]))
      const bytes = Buffer.concat(frame).subarray(LENGTH_BYTES)
      assert.throws(() => readDataMessage(bytes), /not as long as it says/)
    }
  })

  it('are refused when they are of two segments', () => {
    const holds = fc.property(key, (other) => {
      const one = encodeEntries(at, [entryOf(3, 9)])
      const two = encodeEntries(placeOfKey(other), [entryOf(4, 9)])
      const both = {
        count: 2,
        bytes: one.bytes + two.bytes,
        pieces: [...one.pieces, ...two.pieces],
      }
      const bytes = Buffer.concat(appendFrame(append, both)).subarray(LENGTH_BYTES)
      assert.throws(() => readDataMessage(bytes), /entry 4 is of another segment/)
    })
    fc.assert(holds, { numRuns: 20 })
  })

  it('that are fewer than the frame says are missed, and so are some behind a word', () => {
    const one = encodeEntries(at, [entryOf(3, 9)])
    for (const count of [0, 2, 0xffff_ffff]) {
      const bytes = Buffer.concat(appendFrame(append, { ...one, count })).subarray(LENGTH_BYTES)
      assert.throws(() => readDataMessage(bytes), Truncated)
    }
    const word = Buffer.concat(frameOf('acks', (w) => w.u32(0), one)).subarray(LENGTH_BYTES)
    assert.throws(() => readDataMessage(word), /entries behind acks/)
  })
})

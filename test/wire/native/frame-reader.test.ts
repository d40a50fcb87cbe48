import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { FrameReader } from '../../../src/wire/native/frame-reader.ts'

const LIMIT = 1 << 20

function framed(payloads: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    payloads.map((payload) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(payload.length)
      return Buffer.concat([length, payload])
    }),
  )
}

/** Feeds `stream` cut at the given places and collects copies of the frames. */
function read(reader: FrameReader, stream: Uint8Array, cuts: readonly number[]): Buffer[] {
  const frames: Buffer[] = []
  const places = [...new Set(cuts.map((cut) => cut % (stream.length + 1)))].sort((a, b) => a - b)
  let from = 0
  for (const to of [...places, stream.length]) {
    reader.push(stream.subarray(from, to), (frame) => {
      frames.push(Buffer.from(frame))
    })
    from = to
  }
  return frames
}

const payload = fc.uint8Array({ minLength: 6, maxLength: 40 })

describe('a frame reader', () => {
  it('finds the same frames however the stream is cut into chunks', () => {
    fc.assert(
      fc.property(
        fc.array(payload, { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        (payloads, cuts) => {
          const reader = new FrameReader(LIMIT)
          const frames = read(reader, framed(payloads), cuts)
          assert.deepEqual(
            frames,
            payloads.map((p) => Buffer.from(p)),
          )
          assert.equal(reader.midFrame, false)
        },
      ),
    )
  })

  it('finds them when every chunk is one byte', () => {
    const payloads = [Buffer.alloc(6, 1), Buffer.alloc(300, 2), Buffer.alloc(7, 3)]
    const stream = framed(payloads)
    const frames = read(new FrameReader(LIMIT), stream, [...stream.keys()])
    assert.deepEqual(frames, payloads)
  })

  it('puts together frames larger than it trusts at once', () => {
    const big = Buffer.alloc(900_000)
    for (let i = 0; i < big.length; i += 7) big[i] = i
    const stream = framed([big, Buffer.alloc(6, 9)])
    for (const chunkBytes of [100, 65_536, 300_000]) {
      const cuts: number[] = []
      for (let at = 0; at < stream.length; at += chunkBytes) cuts.push(at)
      const frames = read(new FrameReader(LIMIT), stream, cuts)
      assert.equal(frames.length, 2)
      assert.ok(frames[0]?.equals(big))
    }
  })

  it('keeps no view of a chunk, and gives every frame bytes that nobody else has', () => {
    const size = fc.oneof(
      fc.integer({ min: 6, max: 300 }),
      fc.integer({ min: 15_000, max: 70_000 }),
      fc.integer({ min: 200_000, max: 600_000 }),
    )
    const run = fc.property(
      fc.array(size, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1_000, max: 300_000 }),
      (sizes, chunkBytes) => {
        const payloads = sizes.map((bytes, i) => Buffer.alloc(bytes, i + 1))
        const stream = framed(payloads)
        const lent = Buffer.alloc(chunkBytes)
        const frames: Uint8Array[] = []
        // Two readers in turns, for they share memory.
        const readers = [new FrameReader(LIMIT), new FrameReader(LIMIT)]
        for (let at = 0; at < stream.length; at += chunkBytes) {
          for (const reader of readers) {
            const bytes = stream.copy(lent, 0, at, at + chunkBytes)
            reader.push(lent.subarray(0, bytes), (frame) => {
              frames.push(frame)
            })
            lent.fill(0xdd)
          }
        }
        assert.equal(frames.length, 2 * payloads.length)
        for (const payload of payloads) {
          const same = frames.filter((frame) => payload.equals(frame))
          assert.equal(same.length, 2)
        }
        for (const frame of frames) frame.fill(0)
        assert.ok(frames.every((frame) => frame.every((byte) => byte === 0)))
      },
    )
    fc.assert(run, { numRuns: 40 })
  })

  it('makes a buffer of its own for a large frame, so that one that is kept keeps no neighbours', () => {
    const stream = framed([
      Buffer.alloc(64_000, 1),
      Buffer.alloc(64_000, 2),
      Buffer.alloc(64_000, 3),
    ])
    const buffers = new Set<ArrayBufferLike>()
    new FrameReader(LIMIT).push(stream, (frame) => {
      buffers.add(frame.buffer)
      assert.ok(frame.buffer.byteLength < 66_000)
    })
    assert.equal(buffers.size, 3)
  })

  it('knows at every byte whether a frame has begun and not ended', () => {
    const stream = framed([Buffer.alloc(8, 1), Buffer.alloc(6, 2)])
    const ends = new Set([12, 22])
    const reader = new FrameReader(LIMIT)
    for (let at = 0; at < stream.length; at++) {
      reader.push(stream.subarray(at, at + 1), () => {})
      assert.equal(reader.midFrame, !ends.has(at + 1), `after byte ${at}`)
    }
  })

  it('refuses a length above the limit as soon as it is announced, and takes the limit itself', () => {
    const reader = new FrameReader(100)
    let frames = 0
    reader.push(framed([Buffer.alloc(100)]), () => {
      frames++
    })
    assert.equal(frames, 1)
    assert.throws(
      () => {
        reader.push(Buffer.from([0, 0, 0, 101]), () => {})
      },
      { code: 'FRAME_TOO_LARGE', detail: { length: 101, frameBytesMax: 100 } },
    )
  })

  it('takes larger frames once the limit was raised', () => {
    const reader = new FrameReader(10)
    reader.push(framed([Buffer.alloc(10)]), () => {})
    reader.frameBytesMax = 20
    let frames = 0
    reader.push(framed([Buffer.alloc(20)]), () => {
      frames++
    })
    assert.equal(frames, 1)
  })

  it('refuses a frame without room for a header', () => {
    for (const length of [0, 5]) {
      assert.throws(
        () => {
          new FrameReader(LIMIT).push(Buffer.from([0, 0, 0, length, 0, 0, 0, 0, 0]), () => {})
        },
        { code: 'MALFORMED_REQUEST' },
      )
    }
  })

  it('gives no frame after a length that it refused', () => {
    const reader = new FrameReader(100)
    const stream = framed([Buffer.alloc(101), Buffer.alloc(10)])
    let frames = 0
    const count = (): void => {
      frames++
    }
    assert.throws(() => {
      reader.push(stream, count)
    })
    reader.push(framed([Buffer.alloc(10)]), count)
    assert.equal(frames, 0)
  })

  it('stops for good when it is told to', () => {
    const reader = new FrameReader(LIMIT)
    let frames = 0
    const stop = (): boolean => {
      frames++
      return false
    }
    reader.push(framed([Buffer.alloc(10), Buffer.alloc(10)]), stop)
    reader.push(framed([Buffer.alloc(10)]), stop)
    assert.equal(frames, 1)
  })

  it('takes no memory for what is only announced', () => {
    const before = process.memoryUsage().arrayBuffers
    const readers = Array.from({ length: 50 }, () => new FrameReader(72 * LIMIT))
    for (const reader of readers) {
      reader.push(Buffer.from([0x04, 0x80, 0x00, 0x00, 8, 1]), () => {})
    }
    const taken = process.memoryUsage().arrayBuffers - before
    assert.ok(taken < 50 * 300 * 1024, `${taken} bytes for ${readers.length} announcements`)
  })
})

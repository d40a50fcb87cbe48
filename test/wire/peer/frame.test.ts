import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { fromHex } from '../../../src/base/bytes.ts'
import { type ByteReader, type ByteWriter, Truncated } from '../../../src/base/cursor.ts'
import { type ClusterId, clusterId, type NodeId, nodeId } from '../../../src/model/ids.ts'
import { STARTS_MAX, type Starts } from '../../../src/model/starts.ts'
import {
  FRAME,
  frameOf,
  messageFrames,
  openFrame,
  PEER_FRAME_BYTES_MAX,
  PEER_MESSAGE_BYTES_MAX,
  readMessages,
  readNumbered,
} from '../../../src/wire/peer/frame.ts'
import {
  helloFrame,
  PEER_HELLO_BYTES_MAX,
  REFUSAL_REASONS,
  readHello,
  readRefusal,
  readWelcome,
  refusalFrame,
  type Welcome,
  welcomeFrame,
} from '../../../src/wire/peer/hello.ts'
import type { PeerMessage } from '../../../src/wire/peer/types.ts'
import { plain } from '../native/messages.ts'
import { FROM, peerMessage, TO } from './arbitraries.ts'

const LENGTH_BYTES = 4

/** As a frame reader gives it. */
function payloadOf(frame: Uint8Array): Uint8Array {
  const { length } = frame
  assert.equal(Buffer.from(frame).readUInt32BE(0), length - LENGTH_BYTES)
  return frame.subarray(LENGTH_BYTES)
}

function messagesIn(frame: Uint8Array): readonly PeerMessage[] {
  const { kind, body } = openFrame(payloadOf(frame))
  assert.equal(kind, FRAME.MESSAGES)
  return readMessages(body, FROM, TO)
}

function proposal(proposer: string, bytes: number): PeerMessage {
  const command = new Uint8Array(bytes)
  return { kind: 'propose', shard: 1, term: 1, proposer, number: 1, below: 1, command }
}

describe('a frame of messages', () => {
  it('brings all messages of a turn in order', () => {
    const holds = fc.property(
      fc.array(peerMessage, { minLength: 1, maxLength: 10 }),
      (messages) => {
        const { frames, tooLarge } = messageFrames(messages)
        assert.equal(frames.length, 1)
        assert.equal(tooLarge, 0)
        assert.deepEqual(plain(messagesIn(frames[0] as Uint8Array)), plain(messages))
      },
    )
    fc.assert(holds, { numRuns: 300 })
  })

  it('is none when there is nothing to say', () => {
    assert.deepEqual(messageFrames([]), { frames: [], tooLarge: 0 })
  })

  it('is refused after any single bit flipped', () => {
    const bit = fc.tuple(peerMessage, fc.nat()).map(([message, at]) => {
      const frame = payloadOf(messageFrames([message]).frames[0] as Uint8Array).slice()
      const bits = at % (8 * frame.length)
      frame[bits >> 3] = (frame[bits >> 3] as number) ^ (1 << (bits & 7))
      return frame
    })
    fc.assert(fc.property(bit, (frame) => assert.throws(() => openFrame(frame), /checksum/)))
  })

  it('is several when there is much to say, none larger than a broker takes', () => {
    const sizes = [500_000, 600_000, 10, PEER_MESSAGE_BYTES_MAX - 100, 20, 2_000_000]
    const messages = sizes.map((bytes, i) => proposal(`${i}`, bytes))
    const { frames, tooLarge } = messageFrames(messages)
    assert.equal(tooLarge, 0)
    assert.ok(frames.length > 1)
    assert.ok(frames.every((frame) => frame.length - LENGTH_BYTES <= PEER_FRAME_BYTES_MAX))
    const ids = frames
      .flatMap(messagesIn)
      .map((message) => 'proposer' in message && message.proposer)
    assert.deepEqual(ids, ['0', '1', '2', '3', '4', '5'])
  })

  it('leaves out a message that is too large for any, and says so', () => {
    const messages = [proposal('a', 1), proposal('b', PEER_MESSAGE_BYTES_MAX + 1), proposal('c', 1)]
    const { frames, tooLarge } = messageFrames(messages)
    assert.equal(tooLarge, 1)
    const ids = frames
      .flatMap(messagesIn)
      .map((message) => 'proposer' in message && message.proposer)
    assert.deepEqual(ids, ['a', 'c'])
  })

  it('is malformed when it holds no message', () => {
    const empty = openFrame(payloadOf(frameOf(FRAME.MESSAGES, () => {}))).body
    assert.throws(() => readMessages(empty, FROM, TO), Truncated)
  })
})

const id = fc.stringMatching(/^[0-9a-f]{32}$/)
const start = fc.record({
  bootCount: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  id: fc.stringMatching(/^[0-9a-f]{16}$/),
})
/** As many as are told at most, too. */
const starts = fc
  .uniqueArray(start, {
    selector: ({ bootCount }) => bootCount,
    minLength: 1,
    maxLength: STARTS_MAX,
    size: 'max',
  })
  .map((some) => some.sort((a, b) => a.bootCount - b.bootCount) as unknown as Starts)
const identity = {
  version: fc.nat(0xffff),
  clusterId: id as fc.Arbitrary<ClusterId>,
  nodeId: id as fc.Arbitrary<NodeId>,
  starts,
}
const hello = fc.record({ ...identity, to: id as fc.Arbitrary<NodeId> })
const welcome = fc.record(identity)
const refusal = fc.record({
  reason: fc.constantFrom(...REFUSAL_REASONS),
  text: fc.string({ maxLength: 50 }),
})

/** Magic, version, cluster and node. */
const IDENTITY_BYTES = 4 + 2 + 16 + 16
const someWelcome: Welcome = {
  version: 1,
  clusterId: clusterId('c'.repeat(32)),
  nodeId: nodeId('d'.repeat(32)),
  starts: [{ bootCount: 1, id: 'e'.repeat(16) }],
}

describe('a hello and its answers', () => {
  function same<T>(
    values: fc.Arbitrary<T>,
    kind: number,
    write: (value: T) => Uint8Array,
    read: (r: ByteReader) => T,
  ): void {
    const holds = fc.property(values, (value) => {
      const opened = openFrame(payloadOf(write(value)))
      assert.equal(opened.kind, kind)
      assert.deepEqual(plain(read(opened.body)), plain(value))
    })
    fc.assert(holds)
  }

  it('come back as they were written', () => {
    same(hello, FRAME.HELLO, helloFrame, readHello)
    same(welcome, FRAME.WELCOME, welcomeFrame, readWelcome)
    same(refusal, FRAME.REFUSAL, refusalFrame, readRefusal)
  })

  it('fit into what is taken before a link is up', () => {
    const holds = fc.property(hello, (value) => {
      const { length } = payloadOf(helloFrame(value))
      assert.ok(length <= PEER_HELLO_BYTES_MAX, `${length} bytes`)
    })
    fc.assert(holds)
  })

  it('are malformed with no starts, with too many, and with some out of order', () => {
    const hex = 'a'.repeat(16)
    const wrong: readonly (readonly number[])[] = [
      [],
      Array.from({ length: STARTS_MAX + 1 }, (_, i) => i + 1),
      [0],
      [3, 3],
      [3, 2],
    ]
    for (const bootCounts of wrong) {
      const fake = frameOf(FRAME.WELCOME, (w) => {
        w.raw(openFrame(payloadOf(welcomeFrame(someWelcome))).body.raw(IDENTITY_BYTES))
        w.u8(bootCounts.length)
        for (const bootCount of bootCounts) w.i64(bootCount).raw(fromHex(hex))
      })
      assert.throws(() => readWelcome(openFrame(payloadOf(fake)).body), Truncated)
    }
  })

  it('are malformed without their magic', () => {
    const fake = frameOf(FRAME.HELLO, (w) => w.raw(new Uint8Array(70)))
    assert.throws(() => readHello(openFrame(payloadOf(fake)).body), /magic/)
  })

  it('are understood when a later version has put fields behind them', () => {
    const append = (frame: Uint8Array, kind: number): ByteReader => {
      const { body } = openFrame(payloadOf(frame))
      const longer = (w: ByteWriter): void => {
        w.raw(body.raw(body.left)).text('later')
      }
      return openFrame(payloadOf(frameOf(kind, longer))).body
    }
    const holds = fc.property(hello, welcome, refusal, (h, w, f) => {
      assert.deepEqual(plain(readHello(append(helloFrame(h), FRAME.HELLO))), plain(h))
      assert.deepEqual(plain(readWelcome(append(welcomeFrame(w), FRAME.WELCOME))), plain(w))
      assert.deepEqual(plain(readRefusal(append(refusalFrame(f), FRAME.REFUSAL))), plain(f))
    })
    fc.assert(holds)
  })
})

describe('arbitrary bytes', () => {
  it('in a sealed frame of any kind are read or refused as malformed', () => {
    const readers: readonly ((r: ByteReader) => unknown)[] = [
      readHello,
      readWelcome,
      readRefusal,
      readNumbered,
      (r) => readMessages(r, FROM, TO),
    ]
    const holds = fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      for (const read of readers) {
        const { body } = openFrame(payloadOf(frameOf(FRAME.HELLO, (w) => w.raw(bytes))))
        try {
          read(body)
        } catch (error) {
          assert.ok(error instanceof Truncated, String(error))
        }
      }
    })
    fc.assert(holds, { numRuns: 1000 })
  })

  it('of less than a header are refused', () => {
    for (let length = 0; length < 5; length++) {
      assert.throws(() => openFrame(new Uint8Array(length)), Truncated)
    }
  })
})

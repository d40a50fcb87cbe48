import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { crc32c } from '../../../src/base/checksum.ts'
import { Truncated } from '../../../src/base/cursor.ts'
import {
  INCARNATION_MAX,
  PACKET_BYTES_MAX,
  PACKET_SEAL_BYTES,
  type Packet,
  type PacketBody,
  type Update,
} from '../../../src/model/swim.ts'
import { HINT_BYTES, updateBytes } from '../../../src/wire/swim/fields.ts'
import {
  PLAIN_BYTES_MAX,
  packetRoom,
  readPacket,
  writePacket,
} from '../../../src/wire/swim/packet.ts'
import { address, cluster, hint, life, node, update } from './arbitrary.ts'

const sequence = fc.nat(0xffff_ffff)
const body: fc.Arbitrary<PacketBody> = fc.oneof(
  fc.record({ kind: fc.constant('ping' as const), sequence, to: node }),
  fc.record({
    kind: fc.constant('ping-request' as const),
    sequence,
    target: node,
    address: address,
  }),
  fc.record({ kind: fc.constantFrom('ack' as const, 'nack' as const), sequence }),
  fc.record({ kind: fc.constant('gossip' as const) }),
  fc.record({ kind: fc.constant('refused' as const), refused: life, boot: sequence }),
)

/** As full as the sizes allow: no byte more would fit. */
const packet: fc.Arbitrary<Packet> = fc
  .record({
    cluster,
    from: node,
    life,
    body,
    updates: fc.array(update, { maxLength: 20 }),
    hints: fc.array(hint, { maxLength: 60 }),
  })
  .map(({ life: one, updates, hints, ...rest }) => {
    let room = packetRoom(rest.body)
    const fit: Update[] = []
    for (const news of updates) {
      if (updateBytes(news) > room) continue
      room -= updateBytes(news)
      fit.push(news)
    }
    return {
      ...rest,
      ...one,
      updates: fit,
      hints: hints.slice(0, Math.floor(room / HINT_BYTES)),
    }
  })

it('a packet is read as it was written, and is never larger than a datagram may be', () => {
  fc.assert(
    fc.property(packet, (p) => {
      const bytes = writePacket(p)
      assert.ok(bytes.length + PACKET_SEAL_BYTES <= PACKET_BYTES_MAX)
      assert.deepEqual(readPacket(bytes), structuredClone(p))
    }),
  )
})

it('the sizes that packets are packed by are those that are written', () => {
  fc.assert(
    fc.property(packet, (p) => {
      const counted = p.updates.reduce((sum, one) => sum + updateBytes(one), 0)
      const free = packetRoom(p.body) - counted - p.hints.length * HINT_BYTES
      assert.equal(writePacket(p).length, PLAIN_BYTES_MAX - free)
    }),
  )
})

it('a packet that would not fit is not written', () => {
  fc.assert(
    fc.property(packet, hint, (p, one) => {
      const hints = Array.from({ length: 60 }, () => one)
      assert.throws(() => writePacket({ ...p, hints }), RangeError)
    }),
    { numRuns: 20 },
  )
})

it('a flipped bit, a missing end and any other bytes are refused', () => {
  fc.assert(
    fc.property(packet, fc.nat(), fc.nat(7), (p, at, bit) => {
      const bytes = writePacket(p)
      const flipped = bytes.slice()
      flipped[at % bytes.length] = (flipped[at % bytes.length] ?? 0) ^ (1 << bit)
      assert.throws(() => readPacket(flipped), Truncated)
      assert.throws(() => readPacket(bytes.subarray(0, at % bytes.length)), Truncated)
    }),
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1500 }), (bytes) => {
      assert.throws(() => readPacket(bytes), Truncated)
    }),
  )
})

function sealed(bytes: Uint8Array): Uint8Array {
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(0, crc32c(bytes.subarray(4)))
  return bytes
}

it('bytes with a good checksum are read or refused, and nothing else', () => {
  fc.assert(
    fc.property(packet, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }), (p, spots) => {
      const bytes = writePacket(p).slice()
      for (const [at, value] of spots) bytes[4 + (at % (bytes.length - 4))] = value
      try {
        readPacket(sealed(bytes))
      } catch (error) {
        assert.ok(error instanceof Truncated, String(error))
      }
    }),
    { numRuns: 500 },
  )
})

it('a packet of another version is refused by its version', () => {
  fc.assert(
    fc.property(packet, (p) => {
      const bytes = writePacket(p).slice()
      bytes[4] = 4
      assert.throws(() => readPacket(sealed(bytes)), /version 4/)
    }),
    { numRuns: 10 },
  )
})

it('an incarnation that its owner could not contradict is refused', () => {
  fc.assert(
    fc.property(packet, update, (p, one) => {
      const member = { ...one.member, incarnation: INCARNATION_MAX + 1 }
      const bytes = writePacket({ ...p, updates: [{ ...one, member }], hints: [] })
      assert.throws(() => readPacket(bytes), /incarnation/)
    }),
    { numRuns: 20 },
  )
})

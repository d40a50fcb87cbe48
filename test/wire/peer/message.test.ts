import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ByteReader, ByteWriter, Truncated } from '../../../src/base/cursor.ts'
import type { Entry, Members } from '../../../src/model/raft.ts'
import {
  readEntries,
  readEntry,
  readMembers,
  readPayload,
  writeEntries,
  writeEntry,
  writeMembers,
  writePayload,
} from '../../../src/wire/peer/entry.ts'
import { readNumber, writeNumber } from '../../../src/wire/peer/fields.ts'
import { readMessage, writeMessage } from '../../../src/wire/peer/message.ts'
import { readRaft, writeRaft } from '../../../src/wire/peer/raft.ts'
import type { PeerMessage } from '../../../src/wire/peer/types.ts'
import { plain } from '../native/messages.ts'
import { entry, FROM, members, payload, peerMessage, raft, TO, whole } from './arbitraries.ts'

function written<T>(write: (w: ByteWriter, value: T) => void, value: T): Uint8Array {
  const w = new ByteWriter(1)
  write(w, value)
  return w.finish().slice()
}

/** Reads all of the bytes. */
function reread<T>(read: (r: ByteReader) => T, bytes: Uint8Array): T {
  const r = new ByteReader(bytes)
  const value = read(r)
  r.done()
  return value
}

interface Codec<T> {
  readonly values: fc.Arbitrary<T>
  readonly write: (w: ByteWriter, value: T) => void
  readonly read: (r: ByteReader) => T
}

function codec<T>(given: Codec<T>): Codec<unknown> {
  return given as Codec<unknown>
}

const CODECS: Readonly<Record<string, Codec<unknown>>> = {
  'a number': codec({ values: whole, write: writeNumber, read: readNumber }),
  members: codec({ values: members, write: writeMembers, read: readMembers }),
  'a payload': codec({ values: payload, write: writePayload, read: readPayload }),
  'an entry': codec({ values: entry, write: writeEntry, read: readEntry }),
  "Raft's messages": codec({
    values: raft,
    write: writeRaft,
    read: (r) => readRaft(r, FROM, TO),
  }),
  "brokers' messages": codec({
    values: peerMessage,
    write: writeMessage,
    read: (r) => readMessage(r, FROM, TO),
  }),
}

for (const [name, { values, write, read }] of Object.entries(CODECS)) {
  describe(name, () => {
    it('comes back as it was written', () => {
      const holds = fc.property(values, (value) => {
        assert.deepEqual(plain(reread(read, written(write, value))), plain(value))
      })
      fc.assert(holds, { numRuns: 500 })
    })

    it('is refused when the end is missing, wherever', () => {
      const holds = fc.property(values, fc.nat(), (value, cut) => {
        const bytes = written(write, value)
        assert.throws(() => reread(read, bytes.subarray(0, cut % bytes.length)), Truncated)
      })
      fc.assert(holds, { numRuns: 500 })
    })

    it('is read or refused as malformed, whatever the bytes, and has one spelling', () => {
      const damaged = fc
        .tuple(values, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 }))
        .map(([value, flips]) => {
          const bytes = written(write, value)
          for (const [at, byte] of flips) bytes[at % bytes.length] = byte
          return bytes
        })
      const holds = fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 100 })), (bytes) => {
        let value: unknown
        try {
          value = reread(read, bytes)
        } catch (error) {
          assert.ok(error instanceof Truncated, String(error))
          return
        }
        assert.deepEqual([...written(write, value)], [...bytes])
      })
      fc.assert(holds, { numRuns: 2000 })
    })
  })
}

describe('what is read', () => {
  it('keeps nothing of the frame that it came in, as far as a log keeps it', () => {
    const data = Buffer.from('0123456789')
    const command: Entry = { index: 8, term: 3, payload: { kind: 'command', id: 'x', data } }
    const messages: PeerMessage[] = [
      { kind: 'propose', shard: 1, term: 3, proposer: 'x', number: 2, below: 1, command: data },
      { kind: 'feed', shard: 1, entries: [command] },
      {
        kind: 'raft',
        shard: 1,
        message: {
          kind: 'append',
          from: FROM,
          to: TO,
          term: 3,
          prevIndex: 7,
          prevTerm: 2,
          entries: [command],
          commit: 7,
          round: 1,
        },
      },
    ]
    for (const message of messages) {
      // A Buffer, as frames are: its own slice() is a view.
      const bytes = Buffer.from(written(writeMessage, message))
      const read = readMessage(new ByteReader(bytes), FROM, TO)
      bytes.fill(0xdd)
      assert.deepEqual(plain(read), plain(message))
    }
  })

  it('takes no count on trust', () => {
    const many = new ByteWriter().u32(0xffff_ffff).raw(new Uint8Array(64)).finish()
    assert.throws(() => readEntries(new ByteReader(many)), /elements announced/)
  })

  it('is refused when entries leave a hole, repeat, or begin elsewhere', () => {
    const at = (index: number): Entry => ({ index, term: 1, payload: { kind: 'empty' } })
    const entries = (indices: readonly number[], first?: number): readonly Entry[] =>
      readEntries(new ByteReader(written(writeEntries, indices.map(at))), first)
    assert.equal(entries([4, 5, 6], 4).length, 3)
    for (const [indices, first] of [
      [[4, 6], undefined],
      [[4, 4], undefined],
      [[4, 5], 3],
    ] as const) {
      assert.throws(() => entries(indices, first), Truncated)
    }
  })

  it('is refused when a part of a snapshot reaches past its end', () => {
    const message: PeerMessage = {
      kind: 'feed-snapshot',
      shard: 0,
      index: 1,
      term: 1,
      members: { voters: [FROM], learners: [] },
      totalBytes: 10,
      offset: 7,
      bytes: new Uint8Array(4),
    }
    const bytes = written(writeMessage, message)
    assert.throws(() => readMessage(new ByteReader(bytes), FROM, TO), /a part ends at 11 of 10/)
  })
})

describe('the layouts that lie on disks', () => {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
  const group: Members = { voters: [FROM, TO], learners: [] }

  it('stay as they are', () => {
    const command: Entry = {
      index: 258,
      term: 3,
      payload: { kind: 'command', id: 'id', data: Uint8Array.of(9, 8) },
    }
    assert.equal(
      hex(written(writeEntry, command)),
      '0000000000000102' + '0000000000000003' + '01' + '00026964' + '000000020908',
    )
    assert.equal(
      hex(written(writeEntry, { index: 1, term: 1, payload: { kind: 'empty' } })),
      '0000000000000001' + '0000000000000001' + '00',
    )
    assert.equal(
      hex(
        written(writeEntry, {
          index: 1,
          term: 1,
          payload: { kind: 'members', id: '', members: group },
        }),
      ),
      `${'0000000000000001'.repeat(2)}02000002${FROM}${TO}00`,
    )
  })
})

describe('heartbeats', () => {
  it('of a shard take less than twenty bytes for as long as anyone will see', () => {
    const message: PeerMessage = {
      kind: 'raft',
      shard: 255,
      message: {
        kind: 'heartbeat',
        from: FROM,
        to: TO,
        term: 10_000,
        commit: 1_000_000_000,
        round: 1_000_000_000,
      },
    }
    assert.ok(written(writeMessage, message).length < 20)
  })
})

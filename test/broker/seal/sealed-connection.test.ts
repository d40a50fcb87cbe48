// Whatever is done to the bytes between two sealed ends, what comes out is a beginning of what went in, or nothing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { concatBytes, EMPTY, equalBytes, getU32, putU32, utf8 } from '../../../src/base/bytes.ts'
import { Truncated } from '../../../src/base/cursor.ts'
import { prng } from '../../../src/base/prng.ts'
import { KeyRefusals } from '../../../src/broker/seal/refusals.ts'
import {
  RECORD_BYTES_MAX,
  type Role,
  SealedConnection,
} from '../../../src/broker/seal/sealed-connection.ts'
import { nodeSecrets } from '../../../src/io/secrets/node-secrets.ts'
import type { Secrets } from '../../../src/ports/secrets.ts'
import { type SimLog, simLog } from '../../../src/sim/ports/log.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import { simRandom } from '../../../src/sim/ports/random.ts'
import { simSecrets } from '../../../src/sim/ports/secrets.ts'
import { pingFrame } from '../../../src/wire/peer/frame.ts'
import { PEER_MAGIC } from '../../../src/wire/peer/hello.ts'
import { readLinkFrame } from '../../../src/wire/peer/read-frame.ts'
import { keysOf } from '../members/support.ts'
import { WireEnd } from './wire.ts'

const KEY = 'the key of the cluster'
const OTHER = 'the key of another one'
type Keys = readonly [string, ...string[]]

let seed = 1

/** A sealed end and what its user hears. */
class End {
  readonly wire: WireEnd
  readonly sealed: SealedConnection
  readonly log: SimLog = simLog()
  heard: Uint8Array = EMPTY
  closes = 0
  error: string | undefined

  constructor(role: Role, keys: Keys, secrets: Secrets) {
    this.wire = new WireEnd(role === 'dialer' ? 'acceptor' : 'dialer')
    const ports = { secrets, random: simRandom(prng(seed++)) }
    const refusals = new KeyRefusals({ log: this.log, metrics: simMetrics() })
    this.sealed = new SealedConnection(this.wire, role, keysOf(ports, keys), refusals)
    this.sealed.handle({
      onData: (chunk) => {
        this.heard = concatBytes([this.heard, chunk])
      },
      onClose: (error) => {
        this.closes++
        this.error = error?.message
      },
    })
  }
}

interface Ends {
  readonly dialer: End
  readonly acceptor: End
}

function ends(secrets: Secrets, dialer: Keys = [KEY], acceptor: Keys = [KEY]): Ends {
  return {
    dialer: new End('dialer', dialer, secrets),
    acceptor: new End('acceptor', acceptor, secrets),
  }
}

/** Delivers until nothing lies on the wire. */
function settle({ dialer, acceptor }: Ends, chunkBytes?: number): void {
  while (dialer.wire.written.length + acceptor.wire.written.length > 0) {
    acceptor.wire.deliver(dialer.wire.take(), chunkBytes)
    dialer.wire.deliver(acceptor.wire.take(), chunkBytes)
  }
}

function open(secrets: Secrets): Ends {
  const both = ends(secrets)
  settle(both)
  return both
}

const QUESTION = utf8('who is there?')
const ANSWER = utf8('nobody but us')

/** Everything that two ends say to one another in a short talk, in the order in which they say it. */
function talk(secrets: Secrets, change: (bytes: Uint8Array, step: number) => Uint8Array): Ends {
  const both = ends(secrets)
  const { dialer, acceptor } = both
  dialer.sealed.write([QUESTION.subarray(0, 5), QUESTION.subarray(5)])
  let step = 0
  acceptor.wire.deliver(change(dialer.wire.take(), step++))
  dialer.wire.deliver(change(acceptor.wire.take(), step++))
  acceptor.wire.deliver(change(dialer.wire.take(), step++))
  acceptor.sealed.write([ANSWER])
  dialer.wire.deliver(change(acceptor.wire.take(), step++))
  return both
}
const STEPS = 4

function heardNothingElse({ dialer, acceptor }: Ends, what: string): void {
  for (const [end, all] of [
    [acceptor, QUESTION],
    [dialer, ANSWER],
  ] as const) {
    assert.ok(equalBytes(end.heard, all.subarray(0, end.heard.length)), what)
  }
}

/** Where the bytes of length fields are. */
function lengthBytesOf(frames: Uint8Array): Set<number> {
  const found = new Set<number>()
  for (let at = 0; at < frames.length; at += 4 + getU32(frames, at)) {
    for (let i = 0; i < 4; i++) found.add(at + i)
  }
  return found
}

for (const [name, secrets] of [
  ['real', nodeSecrets],
  ['simulated', simSecrets],
] as const) {
  test(`${name}: bytes come whole and in order, both ways, however they are written and cut`, () => {
    const pieces = fc.array(fc.nat({ max: 100 }), { maxLength: 20 })
    const large = fc.array(fc.constantFrom(0, 1, 10_000, RECORD_BYTES_MAX, 150_000), {
      maxLength: 4,
    })
    const turns = fc.array(fc.oneof(pieces, pieces, large), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(
        turns,
        fc.integer({ min: 1, max: 5000 }),
        fc.nat(),
        (sizes, chunkBytes, noise) => {
          const both = ends(secrets)
          const { dialer, acceptor } = both
          const source = prng(noise)
          const said = { dialer: EMPTY, acceptor: EMPTY }
          for (const [turn, lengths] of sizes.entries()) {
            const buffers = lengths.map((length) => source.bytes(length))
            // The acceptor has something to say when it has been asked.
            const [role, end] =
              turn % 2 === 0 ? (['dialer', dialer] as const) : (['acceptor', acceptor] as const)
            end.sealed.write(buffers)
            said[role] = concatBytes([said[role], ...buffers])
            if (turn > 0) settle(both, chunkBytes)
          }
          settle(both, chunkBytes)
          assert.ok(equalBytes(acceptor.heard, said.dialer))
          assert.ok(equalBytes(dialer.heard, said.acceptor))
          assert.equal(dialer.closes + acceptor.closes, 0)
          assert.equal(dialer.sealed.queuedBytes, 0)
        },
      ),
      { numRuns: name === 'real' ? 60 : 15 },
    )
  })

  test(`${name}: what is said cannot be read on the wire`, () => {
    const all: string[] = []
    const both = talk(secrets, (bytes) => {
      all.push(Buffer.from(bytes).toString('latin1'))
      return bytes
    })
    assert.deepEqual(both.acceptor.heard, QUESTION)
    assert.deepEqual(both.dialer.heard, ANSWER)
    for (const secret of [QUESTION, ANSWER, utf8(KEY)]) {
      assert.ok(!all.join('').includes(Buffer.from(secret).toString('latin1')))
    }
  })

  test(`${name}: a byte that is changed anywhere ends the connection, and what it was part of is not passed on`, () => {
    for (let step = 0; step < STEPS; step++) {
      let length = 1
      let inLength = new Set<number>()
      for (let at = 0; at < length; at++) {
        const both = talk(secrets, (bytes, now) => {
          if (now !== step) return bytes
          length = bytes.length
          inLength = lengthBytesOf(bytes)
          return bytes.map((byte, i) => (i === at ? byte ^ 0x55 : byte))
        })
        const what = `byte ${at} of step ${step}`
        heardNothingElse(both, what)
        const victim = step % 2 === 0 ? both.acceptor : both.dialer
        assert.ok(step < 2 || victim.heard.length === 0, what)
        // A length that has become larger waits for more; all else is seen at once.
        const waits = inLength.has(at) && victim.wire.state === 'open'
        assert.ok(waits || victim.wire.state !== 'open', what)
      }
    }
  })

  test(`${name}: what is cut off at any place leaves a beginning`, () => {
    for (let step = 0; step < STEPS; step++) {
      let length = 1
      for (let keep = 0; keep < length; keep++) {
        const both = talk(secrets, (bytes, now) => {
          if (now !== step) return bytes
          length = bytes.length
          return bytes.subarray(0, keep)
        })
        heardNothingElse(both, `${keep} bytes of step ${step}`)
        assert.ok(equalBytes(both.dialer.heard, EMPTY))
      }
    }
  })

  test(`${name}: records that are doubled, left out or exchanged do not open`, () => {
    const say = (end: End, ...texts: string[]): Uint8Array[] =>
      texts.map((text) => {
        end.sealed.write([utf8(text)])
        return end.wire.take()
      })
    for (const order of [[0, 0], [0, 1, 1], [1], [0, 2], [0, 2, 1], [1, 0]]) {
      const { dialer, acceptor } = open(secrets)
      const records = say(dialer, 'a', 'b', 'c')
      const good = order.findIndex((number, place) => number !== place)
      for (const number of order) acceptor.wire.deliver(records[number] ?? EMPTY)
      assert.equal(Buffer.from(acceptor.heard).toString(), 'abc'.slice(0, good), order.join())
      assert.equal(acceptor.wire.state, 'destroyed')
      assert.equal(acceptor.closes, 1)
    }
  })

  test(`${name}: a talk that was caught says nothing to a new acceptor`, () => {
    const caught: Uint8Array[] = []
    talk(secrets, (bytes, step) => {
      if (step % 2 === 0) caught.push(bytes)
      return bytes
    })
    const { acceptor } = ends(secrets)
    for (const bytes of caught) acceptor.wire.deliver(bytes)
    assert.equal(acceptor.heard.length, 0)
    assert.equal(acceptor.wire.state, 'destroyed')
    assert.ok(acceptor.log.lines.some(({ fields }) => fields['reason'] === 'not-proved'))
  })

  test(`${name}: a talk that was caught says nothing to a new dialer`, () => {
    const caught: Uint8Array[] = []
    talk(secrets, (bytes, step) => {
      if (step % 2 === 1) caught.push(bytes)
      return bytes
    })
    const { dialer } = ends(secrets)
    for (const bytes of caught) dialer.wire.deliver(bytes)
    assert.equal(dialer.heard.length, 0)
    assert.match(dialer.error ?? '', /does not prove that it has the cluster key/)
  })

  test(`${name}: what a broker has said is not taken when it is thrown back at it`, () => {
    const { dialer } = ends(secrets)
    dialer.wire.deliver(dialer.wire.take())
    assert.equal(dialer.wire.state, 'destroyed')
    const records = open(secrets)
    for (const end of [records.dialer, records.acceptor]) {
      end.sealed.write([QUESTION])
      end.wire.deliver(end.wire.take())
      assert.equal(end.heard.length, 0)
      assert.equal(end.wire.state, 'destroyed')
    }
  })

  test(`${name}: another key is refused, and both sides say what has to hold`, () => {
    const both = ends(secrets, [KEY], [OTHER])
    const { dialer, acceptor } = both
    dialer.sealed.write([QUESTION])
    settle(both)
    assert.equal(acceptor.heard.length, 0)
    assert.match(dialer.error ?? '', /different cluster keys.*cluster_key_file.*\(other-key\)/)
    const [line] = acceptor.log.lines
    assert.equal(line?.level, 'warn')
    assert.equal(line?.fields['reason'], 'other-key')
    assert.match(String(line?.fields['why']), /all brokers of a cluster need the same/)
  })

  test(`${name}: a key is changed in steps, and neighbours in them understand each other`, () => {
    const steps: readonly Keys[] = [[KEY], [KEY, OTHER], [OTHER, KEY], [OTHER]]
    for (const [i, one] of steps.entries()) {
      for (const [j, other] of steps.entries()) {
        const both = ends(secrets, one, other)
        both.dialer.sealed.write([QUESTION])
        settle(both)
        const understood = equalBytes(both.acceptor.heard, QUESTION)
        if (Math.abs(i - j) < 2) assert.ok(understood, `${i} to ${j}`)
        else assert.equal(understood, other.includes(one[0]))
      }
    }
  })
}

test('a broker without a key is told that one is needed, in words that it understands', () => {
  const { acceptor } = ends(nodeSecrets)
  acceptor.wire.deliver(pingFrame(1))
  const told = readLinkFrame(acceptor.wire.take().subarray(4), PEER_MAGIC)
  assert.ok(told?.kind === 'refusal')
  assert.equal(told.refusal.reason, 'key-needed')
  assert.match(told.refusal.text, /cluster_key_file/)
  assert.equal(acceptor.wire.state, 'ended')
  // It may go on as it likes.
  acceptor.wire.deliver(pingFrame(2))
  assert.equal(acceptor.wire.written.length, 0)
})

test('a place is told of once, and again for another reason', () => {
  const log = simLog()
  const refusals = new KeyRefusals({ log, metrics: simMetrics() })
  const from = { host: 'h', port: 1 }
  for (let i = 0; i < 5; i++) refusals.tellUnproved({ ...from, port: i }, 'garbage')
  assert.equal(log.lines.length, 1)
  refusals.tellUnproved({ host: 'i', port: 1 }, 'garbage')
  assert.equal(log.lines.length, 2)
})

test('a length beyond that of a record is refused when it is announced', () => {
  const { dialer, acceptor } = open(nodeSecrets)
  for (const end of [dialer, acceptor]) {
    const length = new Uint8Array(4)
    putU32(length, 0, RECORD_BYTES_MAX + 16 + 1)
    end.wire.deliver(length)
    assert.equal(end.wire.state, 'destroyed')
    assert.match(end.error ?? '', /is announced/)
  }
})

test('before the key is proved nothing larger than a greeting is taken', () => {
  const { acceptor } = ends(nodeSecrets)
  const length = new Uint8Array(4)
  putU32(length, 0, 2000)
  acceptor.wire.deliver(length)
  assert.equal(acceptor.wire.state, 'destroyed')
})

test('what the receiver throws is its own fault, not that of the other side', () => {
  const both = open(nodeSecrets)
  both.acceptor.sealed.handle({
    onData: () => {
      throw new Truncated('a mistake')
    },
    onClose: () => {},
  })
  both.dialer.sealed.write([QUESTION])
  assert.throws(() => settle(both), /a mistake/)
  assert.equal(both.acceptor.wire.state, 'open')
})

test('what was written before the proof goes out before the end', () => {
  const both = ends(nodeSecrets)
  both.dialer.sealed.write([QUESTION])
  assert.equal(both.dialer.sealed.queuedBytes, QUESTION.length)
  both.dialer.sealed.end()
  settle(both)
  assert.deepEqual(both.acceptor.heard, QUESTION)
  assert.equal(both.dialer.wire.state, 'ended')
})

test('an end that comes before the proof says so, also to who listens later', async () => {
  const { dialer } = ends(nodeSecrets)
  dialer.wire.closed()
  assert.match(dialer.error ?? '', /before it had proved/)
  const wire = new WireEnd('b')
  const ports = { secrets: nodeSecrets, random: simRandom(prng(1)) }
  const refusals = new KeyRefusals({ log: simLog(), metrics: simMetrics() })
  const late = new SealedConnection(wire, 'dialer', keysOf(ports, [KEY]), refusals)
  wire.closed(new Error('reset'))
  const heard = await new Promise<Error | undefined>((resolve) => {
    late.handle({ onData: () => {}, onClose: resolve })
  })
  assert.equal(heard?.message, 'reset')
})

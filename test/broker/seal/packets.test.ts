import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prng } from '../../../src/base/prng.ts'
import { packetSeal } from '../../../src/broker/seal/packets.ts'
import { nodeSecrets } from '../../../src/io/secrets/node-secrets.ts'
import { PACKET_BYTES_MAX, PACKET_SEAL_BYTES } from '../../../src/model/swim.ts'
import { simRandom } from '../../../src/sim/ports/random.ts'
import { simSecrets } from '../../../src/sim/ports/secrets.ts'
import { keysOf } from '../members/support.ts'

const OLD = 'the key of the cluster'
const NEW = 'the key that follows it'

for (const [name, secrets] of [
  ['real', nodeSecrets],
  ['simulated', simSecrets],
] as const) {
  const random = simRandom(prng(1))
  const sealOf = (...keys: [string, ...string[]]) => packetSeal(keysOf({ secrets, random }, keys))
  const seal = sealOf(OLD)

  test(`${name}: packets of every size open, and the largest still fits`, () => {
    for (let length = 0; length <= PACKET_BYTES_MAX - PACKET_SEAL_BYTES; length += 17) {
      const packet = prng(length).bytes(length)
      const sealed = seal.seal(packet)
      assert.equal(sealed.length, length + PACKET_SEAL_BYTES)
      assert.ok(Buffer.from(seal.open(sealed) ?? []).equals(packet))
    }
    assert.equal(seal.open(new Uint8Array(PACKET_BYTES_MAX + 1)), undefined)
  })

  test(`${name}: no two packets are sealed with one key`, () => {
    const packet = new Uint8Array(50)
    const [one, other] = [seal.seal(packet), seal.seal(packet)].map((sealed) =>
      Buffer.from(sealed).subarray(PACKET_SEAL_BYTES - 16),
    )
    assert.notDeepEqual(one, other)
  })

  test(`${name}: what is changed or cut anywhere does not open`, () => {
    const sealed = seal.seal(prng(2).bytes(100))
    for (let at = 0; at < sealed.length; at++) {
      const changed = sealed.map((byte, i) => (i === at ? byte ^ 1 : byte))
      assert.equal(seal.open(changed), undefined, `byte ${at}`)
      assert.equal(seal.open(sealed.subarray(0, at)), undefined, `${at} bytes`)
    }
  })

  test(`${name}: a packet in the clear, or of another key, does not open`, () => {
    const packet = prng(3).bytes(100)
    assert.equal(seal.open(packet), undefined)
    assert.equal(seal.open(sealOf(NEW).seal(packet)), undefined)
  })

  test(`${name}: the first key seals and all open`, () => {
    const packet = prng(4).bytes(100)
    const sealed = sealOf(OLD, NEW).seal(packet)
    assert.ok(sealOf(NEW, OLD).open(sealed) !== undefined)
    assert.ok(sealOf(OLD).open(sealed) !== undefined)
    assert.equal(sealOf(NEW).open(sealed), undefined)
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { concatBytes, toHex, utf8 } from '../../src/base/bytes.ts'
import { nodeSecrets } from '../../src/io/secrets/node-secrets.ts'
import type { Secrets } from '../../src/ports/secrets.ts'
import { simSecrets } from '../../src/sim/ports/secrets.ts'

const SIDES: readonly (readonly [string, Secrets])[] = [
  ['real', nodeSecrets],
  ['simulated', simSecrets],
]
const SECRET = utf8('sixteen letters.')
const SALT = utf8('salt')

for (const [name, secrets] of SIDES) {
  const key = secrets.derive(SECRET, SALT, 'use')
  const seal = (number: number, ...parts: readonly Uint8Array[]): Uint8Array =>
    concatBytes(secrets.seal(key, number, parts))

  test(`${name} secrets: what was sealed opens, however it was cut, and is 16 bytes longer`, () => {
    const parts = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 5 })
    const numbers = fc.nat({ max: Number.MAX_SAFE_INTEGER })
    fc.assert(
      fc.property(parts, numbers, (pieces, number) => {
        const plain = concatBytes(pieces)
        const sealed = seal(number, ...pieces)
        assert.equal(sealed.length, plain.length + 16)
        assert.deepEqual(sealed, seal(number, plain))
        const opened = secrets.open(key, number, sealed)
        assert.ok(opened !== undefined && Buffer.from(opened).equals(plain))
      }),
    )
  })

  test(`${name} secrets: a changed bit, a missing byte, another number or another key opens nothing`, () => {
    const sealed = seal(7, utf8('what is said'))
    for (let bit = 0; bit < 8 * sealed.length; bit++) {
      const changed = sealed.slice()
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7))
      assert.equal(secrets.open(key, 7, changed), undefined, `bit ${bit}`)
    }
    for (let length = 0; length < sealed.length; length++) {
      assert.equal(secrets.open(key, 7, sealed.subarray(0, length)), undefined)
      assert.equal(secrets.open(key, 7, sealed.subarray(sealed.length - length)), undefined)
    }
    for (const number of [0, 6, 8, 7 + 2 ** 32]) {
      assert.equal(secrets.open(key, number, sealed), undefined)
    }
    assert.equal(secrets.open(secrets.derive(SECRET, SALT, 'other use'), 7, sealed), undefined)
  })

  test(`${name} secrets: a key follows from its secret, salt and label, and from nothing else`, () => {
    const text = fc.uint8Array({ maxLength: 40 })
    fc.assert(
      fc.property(text, text, fc.string(), (secret, salt, label) => {
        const one = secrets.derive(secret, salt, label)
        assert.equal(one.length, 32)
        assert.deepEqual(one, secrets.derive(secret.slice(), salt.slice(), label))
        assert.notDeepEqual(one, secrets.derive(concatBytes([secret, SALT]), salt, label))
        assert.notDeepEqual(one, secrets.derive(secret, concatBytes([salt, SALT]), label))
        assert.notDeepEqual(one, secrets.derive(secret, salt, `${label}.`))
      }),
    )
  })
}

test('real secrets: keys and ciphers are those of the standards', () => {
  // RFC 5869, test case 3; the cases 13 and 14 of the paper that describes GCM.
  const derived = nodeSecrets.derive(new Uint8Array(22).fill(0x0b), new Uint8Array(0), '')
  assert.equal(toHex(derived), '8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d')
  const zeros = new Uint8Array(32)
  assert.equal(
    toHex(concatBytes(nodeSecrets.seal(zeros, 0, []))),
    '530f8afbc74536b9a963b4f1c4cb738b',
  )
  assert.equal(
    toHex(concatBytes(nodeSecrets.seal(zeros, 0, [new Uint8Array(16)]))),
    'cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919',
  )
})

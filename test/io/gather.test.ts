import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { gather } from '../../src/io/gather.ts'

/** What the kernel takes in one vectored write. */
const IOV_MAX = 1024

test('gathering keeps the bytes and their order, and never gives more than one system call takes', () => {
  const length = fc.oneof(fc.nat(64), fc.nat(5000), fc.nat(20_000))
  fc.assert(
    fc.property(
      fc.array(length, { maxLength: 40 }),
      fc.integer({ min: 1, max: 60 }),
      (lengths, times) => {
        const one = lengths.map((size, i) => new Uint8Array(size).fill(i + 1))
        const buffers = Array.from({ length: times }, () => one).flat()
        const gathered = gather(buffers)
        assert.ok(gathered.length <= IOV_MAX)
        assert.ok(Buffer.concat(gathered).equals(Buffer.concat(buffers)))
      },
    ),
    { numRuns: 50 },
  )
})

test('a large buffer passes as it is', () => {
  const large = new Uint8Array(64 * 1024)
  const gathered = gather([new Uint8Array(10), new Uint8Array(10), large, new Uint8Array(10)])
  assert.deepEqual(
    gathered.map((buffer) => buffer.length),
    [20, 64 * 1024, 10],
  )
  assert.equal(gathered[1], large)
})

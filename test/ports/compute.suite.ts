import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CODECS, type Codec } from '../../src/base/codec.ts'
import { EastGuardError } from '../../src/base/errors.ts'
import { prng } from '../../src/base/prng.ts'
import type { Compute } from '../../src/ports/compute.ts'

const REAL_CODECS: readonly Codec[] = CODECS.filter((codec) => codec !== 'none')
const MIB = 1024 * 1024

export function computeSuite(name: string, compute: Compute): void {
  for (const codec of CODECS) {
    test(`${name} compute: ${codec} gives back what it took`, async () => {
      const content = fc.oneof(
        fc.uint8Array({ maxLength: 200 }),
        // Long, and compressible to varying degrees: runs of seeded noise.
        fc.tuple(fc.nat(120_000), fc.nat(1000), fc.nat()).map(([length, period, seed]) => {
          const noise = prng(seed).bytes(period + 1)
          return Uint8Array.from({ length }, (_, i) => noise[i % noise.length] as number)
        }),
      )
      await fc.assert(
        fc.asyncProperty(content, async (bytes) => {
          const small = await compute.compress(codec, bytes)
          const back = await compute.decompress(codec, small, bytes.length)
          assert.ok(Buffer.from(back).equals(bytes))
        }),
        { numRuns: 40 },
      )
    })
  }

  for (const codec of REAL_CODECS) {
    test(`${name} compute: ${codec} refuses what is not of the codec, or cut off`, async () => {
      const good = await compute.compress(codec, prng(1).bytes(3000))
      for (const length of [1, 2, 5, 9, good.length >> 1, good.length - 1]) {
        await refused(compute.decompress(codec, good.subarray(0, length), MIB))
      }
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 100 }), async (garbage) => {
          // Garbage may be valid by chance; then it must at least stay within bounds.
          await compute.decompress(codec, garbage, 10_000).then(
            (bytes) => assert.ok(bytes.length <= 10_000),
            (error: unknown) => assert.ok(error instanceof EastGuardError),
          )
        }),
        { numRuns: 100 },
      )
    })

    test(`${name} compute: ${codec} refuses damaged bytes or stays within bounds`, async () => {
      const content = prng(2).bytes(400)
      const good = await compute.compress(codec, Buffer.concat(Array(20).fill(content)))
      await fc.assert(
        fc.asyncProperty(
          fc.nat(good.length - 1),
          fc.integer({ min: 1, max: 255 }),
          async (at, x) => {
            const bad = good.slice()
            bad[at] = (bad[at] as number) ^ x
            await compute.decompress(codec, bad, 10_000).then(
              (bytes) => assert.ok(bytes.length <= 10_000),
              (error: unknown) => assert.ok(error instanceof EastGuardError),
            )
          },
        ),
        { numRuns: 100 },
      )
    })

    test(`${name} compute: ${codec} refuses a bomb without taking its memory`, async () => {
      const bomb = await compute.compress(codec, new Uint8Array(256 * MIB))
      const before = process.resourceUsage().maxRSS
      await refused(compute.decompress(codec, bomb, 4 * MIB))
      const grownBytes = (process.resourceUsage().maxRSS - before) * 1024
      assert.ok(grownBytes < 64 * MIB, `the peak grew by ${grownBytes} bytes`)
    })

    test(`${name} compute: ${codec} takes exactly as much as is allowed`, async () => {
      const bytes = Buffer.concat(Array(300).fill(prng(4).bytes(1001)))
      const small = await compute.compress(codec, bytes)
      assert.ok(Buffer.from(await compute.decompress(codec, small, bytes.length)).equals(bytes))
      await refused(compute.decompress(codec, small, bytes.length - 1))
      await refused(compute.decompress(codec, small, 0))
    })
  }
}

export async function refused(work: Promise<unknown>): Promise<void> {
  await assert.rejects(
    work,
    (error) => error instanceof EastGuardError && error.code === 'DECODE_FAILED',
  )
}

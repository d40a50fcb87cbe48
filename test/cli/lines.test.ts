import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { linesOf } from '../../src/cli/lines.ts'

async function collect(chunks: readonly Uint8Array[], most: number): Promise<Buffer[]> {
  async function* input(): AsyncGenerator<Uint8Array> {
    yield* chunks
  }
  const lines: Buffer[] = []
  for await (const some of linesOf(input(), most)) {
    for (const line of some) lines.push(Buffer.from(line))
  }
  return lines
}

test('lines are the same however the bytes are cut into chunks', async () => {
  const byte = fc.oneof(fc.constant(10), fc.constant(13), fc.integer({ min: 0, max: 255 }))
  const bytes = fc.array(byte, { maxLength: 200 }).map((list) => Buffer.from(list))
  await fc.assert(
    fc.asyncProperty(bytes, fc.array(fc.integer({ min: 1, max: 20 })), async (text, cuts) => {
      const chunks: Buffer[] = []
      let at = 0
      for (const cut of cuts) {
        chunks.push(text.subarray(at, at + cut))
        at += cut
      }
      chunks.push(text.subarray(at))
      const lines = await collect(chunks, 1000)
      const ended = text.length === 0 || text.at(-1) === 10
      const joined = lines.map((line) => `${line.toString('latin1')}\n`).join('')
      assert.equal(joined, text.toString('latin1') + (ended ? '' : '\n'))
    }),
  )
})

test('a line longer than the bound is refused, over chunks too', async () => {
  await assert.rejects(collect([Buffer.alloc(6, 'a'), Buffer.alloc(6, 'a')], 10), {
    code: 'RECORD_TOO_LARGE',
  })
  assert.equal((await collect([Buffer.alloc(10, 'a'), Buffer.from('\n')], 10)).length, 1)
})

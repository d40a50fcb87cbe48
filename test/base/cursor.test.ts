import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ByteReader, ByteWriter, Truncated } from '../../src/base/cursor.ts'

describe('a text', () => {
  it('keeps a byte order mark that it begins with', () => {
    const text = '\ufeffbegins'
    const bytes = new ByteWriter().text(text).finish()
    assert.equal(new ByteReader(bytes).text(), text)
  })
})

describe('a number below 2^53', () => {
  it('is refused when it is negative or larger', () => {
    const read = (value: number): number =>
      new ByteReader(new ByteWriter().i64(value).finish()).u53()
    assert.equal(read(Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)
    assert.equal(read(0), 0)
    assert.throws(() => read(-1), Truncated)
    assert.throws(() => read(2 ** 53), Truncated)
  })
})

describe('a writer', () => {
  it('forgets what it is told to take back, and nothing else', () => {
    const w = new ByteWriter(1).u16(0x0102).u32(7)
    w.truncate(2)
    assert.deepEqual([...w.u8(3).finish()], [1, 2, 3])
    assert.throws(() => w.truncate(4), RangeError)
  })
})

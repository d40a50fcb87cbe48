import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SegmentIndex } from '../../../src/storage/index/segment-index.ts'
import {
  BLOCK_FIXED_BYTES,
  type BlockHeader,
  blockEnd,
  HEADER_PAGE_BYTES,
  PIECE_LINE_BYTES,
  type Piece,
} from '../../../src/storage/segment/format.ts'

const pieceOf = fc.record({
  partition: fc.integer({ min: 0, max: 3 }),
  records: fc.integer({ min: 1, max: 5 }),
  bytes: fc.integer({ min: 100, max: 5000 }),
  maxTimestamp: fc.integer({ min: 0, max: 30 }),
})

/** Blocks as the writer makes them, and all their pieces with absolute positions. */
function blocksOf(
  shape: readonly (readonly (typeof pieceOf extends fc.Arbitrary<infer T> ? T : never)[])[],
): {
  blocks: BlockHeader[]
  pieces: Piece[]
} {
  const next = new Map<number, number>()
  const blocks: BlockHeader[] = []
  const all: Piece[] = []
  let position = HEADER_PAGE_BYTES
  let firstEntry = 0
  for (const wanted of shape) {
    const headerBytes = BLOCK_FIXED_BYTES + wanted.length * PIECE_LINE_BYTES
    let at = headerBytes
    const pieces: Piece[] = []
    for (const each of wanted.toSorted((a, b) => a.partition - b.partition)) {
      const firstOffset = next.get(each.partition) ?? 0
      const nextOffset = firstOffset + each.records
      next.set(each.partition, nextOffset)
      const keys = { leastKeyHash: 0, greatestKeyHash: 0 }
      const piece = { ...each, ...keys, entries: 1, firstOffset, nextOffset, at }
      pieces.push(piece)
      all.push({ ...piece, at: position + at })
      at += each.bytes
    }
    const block = {
      position,
      headerBytes,
      bodyBytes: at - headerBytes,
      firstEntry,
      entryCount: wanted.length,
      pieces,
    }
    blocks.push(block)
    position = blockEnd(block)
    firstEntry += wanted.length
  }
  return { blocks, pieces: all }
}

test('what the index finds by offset, time and entry number is what a linear search finds', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(pieceOf, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 0, max: 4 }),
      fc.integer({ min: 0, max: 100 }),
      fc.integer({ min: 0, max: 31 }),
      fc.integer({ min: 0, max: 20_000 }),
      (shape, partition, offset, timestamp, bytes) => {
        const { blocks, pieces } = blocksOf(shape)
        const index = new SegmentIndex()
        for (const block of blocks) index.add(block)
        const mine = pieces.filter((piece) => piece.partition === partition)
        const from = mine.findIndex((piece) => piece.nextOffset > offset)
        const want: Piece[] = []
        let total = 0
        for (const piece of from < 0 ? [] : mine.slice(from)) {
          want.push(piece)
          total += piece.bytes
          if (total >= bytes) break
        }
        assert.deepEqual(
          index.find(partition, offset, bytes, 1000).map((piece) => piece.position),
          want.map((piece) => piece.at),
        )
        assert.equal(
          index.findTime(partition, timestamp)?.position,
          mine.find((piece) => piece.maxTimestamp >= timestamp)?.at,
        )
        assert.equal(index.nextOffset(partition), mine.at(-1)?.nextOffset ?? 0)
        for (const block of blocks) {
          for (let e = block.firstEntry; e < block.firstEntry + block.entryCount; e++) {
            assert.equal(index.blockOf(e).position, block.position)
          }
        }
      },
    ),
    { numRuns: 500 },
  )
})

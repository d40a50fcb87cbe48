import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryRecord, hardStateRecord, restoreShard } from '../../../src/broker/shards/records.ts'
import type { Entry } from '../../../src/model/raft.ts'

function entry(index: number, term: number): Entry {
  return { index, term, payload: { kind: 'empty' } }
}

function restored(...records: readonly Uint8Array[]): string {
  const { entries, hardState } = restoreShard(0, {
    snapshot: undefined,
    records: records.map((bytes, i) => ({ position: i + 1, bytes })),
  })
  return `${entries.map(({ index, term }) => `${index}/${term}`).join(' ')} in ${hardState.term}`
}

function written(...entries: readonly (readonly [number, number])[]): readonly Uint8Array[] {
  return entries.map(([index, term]) => entryRecord(entry(index, term)))
}

test('an entry of another term takes the place of all that followed', () => {
  assert.equal(restored(...written([1, 1], [2, 1], [3, 1], [2, 2])), '1/1 2/2 in 0')
  assert.equal(restored(...written([1, 1], [2, 1], [2, 2], [2, 1], [3, 3])), '1/1 2/1 3/3 in 0')
})

test('entries that a checkpoint writes again stay, however few of them a crash lets through', () => {
  const log = written([1, 1], [2, 1], [3, 2], [4, 2])
  for (let again = 0; again <= 3; again++) {
    assert.equal(restored(...log, ...log.slice(1, 1 + again)), '1/1 2/1 3/2 4/2 in 0')
  }
})

test('the greater term counts, whichever record is the newer', () => {
  const term = (of: number): Uint8Array => hardStateRecord({ term: of, vote: undefined })
  assert.equal(restored(term(2), ...written([1, 1]), term(1)), '1/1 in 2')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LeaseBook } from '../../../src/core/segment/leases.ts'
import { SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import { topicId } from '../../../src/model/ids.ts'

const KEY = { topicId: topicId('0'.repeat(32)), range: 0, segment: 1 }
const SHARD = 7

const step = fc.record({
  afterMs: fc.nat(400),
  kind: fc.constantFrom('ask', 'confirm', 'answer', 'lose'),
  pick: fc.nat(3),
})

test('a lease ends at its broker before the coordinator counts it as ended, whatever is lost or late and however clocks run', () => {
  const { leaseTtlMs, leaseGraceMs } = SEGMENT_TIMING
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.double({ min: 0.95, max: 1.05, noNaN: true }),
      (steps, pace) => {
        const book = new LeaseBook(leaseTtlMs)
        const asked: number[] = []
        const answers: number[] = []
        let confirmedMs = 0
        let seq = 0
        let nowMs = 0
        for (const { afterMs, kind, pick } of steps) {
          nowMs += afterMs
          const one = (list: number[]): number => list.splice(pick % list.length, 1)[0] ?? 0
          if (kind === 'ask') {
            book.requested(++seq, nowMs * pace)
            asked.push(seq)
          } else if (kind === 'confirm' && asked.length > 0) {
            answers.push(one(asked))
            confirmedMs = nowMs
          } else if (answers.length > 0) {
            const answered = one(answers)
            if (kind === 'answer') book.answered(answered, [{ shard: SHARD, index: 1 }], [])
          }
          const countedMs = Math.max(nowMs, confirmedMs + leaseGraceMs)
          assert.equal(book.leased(SHARD, KEY, 1, countedMs * pace), false)
        }
      },
    ),
    { numRuns: 500 },
  )
})

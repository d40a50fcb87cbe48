import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LeaseDesk } from '../../../src/core/segment/lease-desk.ts'
import { LeaseBook } from '../../../src/core/segment/leases.ts'
import { SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import { topicId } from '../../../src/model/ids.ts'
import { idOf } from './care-script.ts'

const KEY = { topicId: topicId('0'.repeat(32)), range: 0, segment: 1 }
const A = idOf('A')

test('a lease ends at its broker before the coordinator counts it as ended, whatever is lost or late', () => {
  const step = fc.record({
    afterMs: fc.nat(400),
    kind: fc.constantFrom('ask', 'take', 'reply', 'lose'),
    pick: fc.nat(3),
  })
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.double({ min: 0.95, max: 1.05, noNaN: true }),
      (steps, pace) => {
        const desk = new LeaseDesk(SEGMENT_TIMING)
        const leases = new LeaseBook(SEGMENT_TIMING.leaseTtlMs)
        desk.leads(7, 0)
        const under: number[] = []
        const replies: { seq: number; shards: readonly number[] }[] = []
        let now = 0
        let seq = 0
        for (const { afterMs, kind, pick } of steps) {
          now += afterMs
          const brokers = now * pace
          if (kind === 'ask') {
            leases.requested(++seq, brokers)
            under.push(seq)
          } else if (kind === 'take' && under.length > 0) {
            const [asked] = under.splice(pick % under.length, 1)
            const { shards } = desk.request({ from: A, boot: 1, oldestSyncMs: 0, shards: [7] }, now)
            replies.push({ seq: asked as number, shards })
          } else if (replies.length > 0) {
            const [reply] = replies.splice(pick % replies.length, 1)
            const confirmed = (reply?.shards ?? []).map((shard) => ({ shard, index: 1 }))
            if (kind === 'reply') leases.answered(reply?.seq ?? 0, confirmed, [])
          }
          if (now - desk.lastConfirmedMs(7, A) < SEGMENT_TIMING.leaseGraceMs) continue
          assert.equal(leases.leased(7, KEY, 1, brokers), false)
        }
      },
    ),
    { numRuns: 500 },
  )
})

test('a coordinator counts from its election before it has confirmed anyone', () => {
  const desk = new LeaseDesk(SEGMENT_TIMING)
  assert.equal(desk.lastConfirmedMs(7, A), Number.POSITIVE_INFINITY)
  desk.leads(7, 500)
  assert.equal(desk.lastConfirmedMs(7, A), 500)
  desk.request({ from: A, boot: 1, oldestSyncMs: 0, shards: [7, 8] }, 900)
  assert.equal(desk.lastConfirmedMs(7, A), 900)
  desk.leadsNoMore(7)
  desk.leads(7, 2000)
  assert.equal(desk.lastConfirmedMs(7, A), 2000)
})

test('nothing is confirmed to an earlier start, or to a broker whose disk is stuck, or of a shard that is not led', () => {
  const desk = new LeaseDesk(SEGMENT_TIMING)
  desk.leads(7, 0)
  const ask = { from: A, boot: 3, oldestSyncMs: 0, shards: [7, 8] }
  assert.deepEqual(desk.request(ask, 10), { shards: [7], stuck: false })
  assert.deepEqual(desk.request({ ...ask, boot: 2 }, 20), { shards: [], stuck: false })
  const stuck = SEGMENT_TIMING.replicaAckTimeoutMs + 1
  assert.deepEqual(desk.request({ ...ask, oldestSyncMs: stuck }, 30), { shards: [], stuck: true })
  assert.equal(desk.lastConfirmedMs(7, A), 10)
})

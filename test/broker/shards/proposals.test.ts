import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError } from '../../../src/base/errors.ts'
import { ShardCopy } from '../../../src/broker/shards/copy.ts'
import { type Offer, Proposals } from '../../../src/broker/shards/proposals.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import type { Refusal } from '../../../src/model/raft.ts'
import { node } from '../../core/metadata/support.ts'
import { type ManualClock, manualClock } from '../../storage/support/ports.ts'

const TERM = 3
const COMMAND = Uint8Array.of(1, 2, 3)

interface Asked {
  readonly clock: ManualClock
  readonly proposals: Proposals
  readonly offers: (Offer & { readonly to: NodeId })[]
  /** The code of the rejection. */
  readonly outcome: Promise<string>
}

function ask(onlyTerm?: number, leaderTerm: () => number = () => TERM): Asked {
  const clock = manualClock()
  const offers: (Offer & { readonly to: NodeId })[] = []
  const proposals = new Proposals({
    clock,
    proposer: 'p',
    timeoutMs: 2000,
    asked: 0,
    leaderOf: () => ({ node: node(1), term: leaderTerm() }),
    anyone: () => node(2),
    offer: (to, offer) => {
      offers.push({ to, ...offer })
      return undefined
    },
  })
  const outcome = proposals.propose(0, COMMAND, onlyTerm).then(
    () => 'answered',
    (error: unknown) => (error instanceof EastGuardError ? error.code : 'unknown'),
  )
  return { clock, proposals, offers, outcome }
}

function refuse({ proposals, offers }: Asked, refusal: Refusal): void {
  const { number } = offers[0] as Offer
  const kind = 'propose-answer'
  proposals.answered({ kind, shard: 0, term: TERM, number, refusal, leader: undefined })
}

function pass({ clock, proposals }: Asked, ms: number): void {
  clock.advance(ms)
  proposals.tick()
}

test('a proposal whose only offer was refused is offered anew, and has not happened', async () => {
  const asked = ask()
  for (const refusal of ['leadership-is-leaving', 'not-leader'] as const) {
    refuse(asked, refusal)
    pass(asked, 100)
  }
  assert.equal(asked.offers.length, 3)
  refuse(asked, 'too-much-under-way')
  pass(asked, 2000)
  assert.equal(await asked.outcome, 'METADATA_UNAVAILABLE')
})

test('a refusal says nothing of a proposal that was offered twice: the other offer may be taken', async () => {
  for (const refusal of ['leadership-is-leaving', 'too-much-under-way', 'storage-full'] as const) {
    const asked = ask()
    pass(asked, 600)
    assert.equal(asked.offers.filter(({ term }) => term === TERM).length, 2)
    refuse(asked, refusal)
    pass(asked, 2000)
    assert.equal(await asked.outcome, 'TIMEOUT')
  }
})

test('while there is no word of a proposal others are asked who leads: this broker may have missed it', () => {
  const asked = ask()
  pass(asked, 600)
  const seen = asked.offers.map(({ to, term }) => [to, term])
  assert.deepEqual(seen, [
    [node(1), TERM],
    [node(2), 0],
    [node(1), TERM],
  ])
})

test('a proposal for one term is offered in no other', async () => {
  const late = ask(TERM - 1)
  assert.equal(late.offers.length, 0)
  assert.equal(await late.outcome, 'METADATA_UNAVAILABLE')

  let term = TERM
  const refused = ask(TERM, () => term)
  refuse(refused, 'not-leader')
  term++
  pass(refused, 100)
  assert.equal(refused.offers.length, 1)
  assert.equal(await refused.outcome, 'METADATA_UNAVAILABLE')

  term = TERM
  const taken = ask(TERM, () => term)
  term++
  // Nobody has said that it is not in the log.
  pass(taken, 600)
  taken.proposals.leaderChanged(0)
  assert.deepEqual(
    taken.offers.map((offer) => offer.term),
    [TERM, 0, 0],
  )
  const copy = new ShardCopy(0, { changed: () => {}, applied: () => {}, advanced: () => {} })
  copy.apply([{ index: 1, term, payload: { kind: 'empty' } }])
  taken.proposals.advanced(copy, false)
  assert.equal(await taken.outcome, 'METADATA_UNAVAILABLE')
  assert.equal(taken.offers.length, 3)
})

test('asking who leads carries no command: only an offer does', async () => {
  const asked = ask()
  asked.proposals.answered({
    kind: 'propose-answer',
    shard: 0,
    term: TERM,
    number: (asked.offers[0] as Offer).number,
    refusal: undefined,
    leader: undefined,
  })
  pass(asked, 600)
  assert.deepEqual(
    asked.offers.map(({ term, command }) => [term, command.length]),
    [
      [TERM, COMMAND.length],
      [0, 0],
    ],
  )
  pass(asked, 2000)
  assert.equal(await asked.outcome, 'TIMEOUT')
})

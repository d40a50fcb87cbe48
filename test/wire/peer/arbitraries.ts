// Arbitrary messages between brokers, as a broker might send them.

import fc from 'fast-check'
import { type NodeId, nodeId } from '../../../src/model/ids.ts'
import {
  type AppendAnswer,
  type Entry,
  type Members,
  type Message,
  type Payload,
  REFUSALS,
} from '../../../src/model/raft.ts'
import type { PeerMessage } from '../../../src/wire/peer/types.ts'

export const FROM: NodeId = nodeId('a'.repeat(32))
export const TO: NodeId = nodeId('b'.repeat(32))

/** All sizes alike: most arbitrary integers would be huge. */
export const whole: fc.Arbitrary<number> = fc
  .tuple(fc.nat(52), fc.maxSafeNat())
  .map(([bits, value]) => value % 2 ** (bits + 1))
const index = whole.map((value) => Math.min(value, Number.MAX_SAFE_INTEGER - 100))
const text = fc.string({ unit: 'binary', maxLength: 20 })
const bytes = fc.uint8Array({ maxLength: 40 })
const node = fc.stringMatching(/^[0-9a-f]{32}$/) as fc.Arbitrary<NodeId>
const leader = fc.option(fc.record({ node, term: whole }), { nil: undefined })
const nodes = fc.array(node, { maxLength: 5 })
export const members: fc.Arbitrary<Members> = fc.record({ voters: nodes, learners: nodes })

export const payload: fc.Arbitrary<Payload> = fc.oneof(
  fc.constant({ kind: 'empty' } as const),
  fc.record({ kind: fc.constant('command' as const), id: text, data: bytes }),
  fc.record({ kind: fc.constant('members' as const), id: text, members }),
)
export const entry: fc.Arbitrary<Entry> = fc.record({ index, term: whole, payload })

function following(prevIndex: number): fc.Arbitrary<readonly Entry[]> {
  return fc
    .array(fc.record({ term: whole, payload }), { maxLength: 4 })
    .map((entries) => entries.map((rest, i) => ({ index: prevIndex + 1 + i, ...rest })))
}

const part = fc
  .record({ offset: index, bytes, behind: fc.nat(50) })
  .map(({ offset, bytes, behind }) => ({
    offset,
    bytes,
    totalBytes: offset + bytes.length + behind,
  }))

const result: fc.Arbitrary<AppendAnswer['result']> = fc.oneof(
  fc.constant({ ok: true } as const),
  fc.record({ ok: fc.constant(true as const), match: whole }),
  fc.record({
    ok: fc.constant(false as const),
    prevIndex: whole,
    hintIndex: whole,
    hintTerm: whole,
  }),
)

const bool = fc.boolean()
const head = { from: fc.constant(FROM), to: fc.constant(TO), term: whole }

/** By kind, so that the compiler misses one that is forgotten. */
const RAFT: { readonly [K in Message['kind']]: fc.Arbitrary<Extract<Message, { kind: K }>> } = {
  vote: fc.record({
    kind: fc.constant('vote'),
    ...head,
    pre: bool,
    transfer: bool,
    lastIndex: whole,
    lastTerm: whole,
  }),
  'vote-answer': fc.record({ kind: fc.constant('vote-answer'), ...head, pre: bool, granted: bool }),
  append: index.chain((prevIndex) =>
    fc.record({
      kind: fc.constant('append'),
      ...head,
      prevIndex: fc.constant(prevIndex),
      prevTerm: whole,
      entries: following(prevIndex),
      commit: whole,
      round: whole,
    }),
  ),
  heartbeat: fc.record({ kind: fc.constant('heartbeat'), ...head, commit: whole, round: whole }),
  'append-answer': fc.record({
    kind: fc.constant('append-answer'),
    ...head,
    round: whole,
    result,
  }),
  snapshot: part.chain((piece) =>
    fc.record({
      kind: fc.constant('snapshot'),
      ...head,
      index: whole,
      snapshotTerm: whole,
      members,
      totalBytes: fc.constant(piece.totalBytes),
      offset: fc.constant(piece.offset),
      bytes: fc.constant(piece.bytes),
      round: whole,
    }),
  ),
  'snapshot-answer': fc.record({
    kind: fc.constant('snapshot-answer'),
    ...head,
    index: whole,
    offset: whole,
    round: whole,
  }),
  'timeout-now': fc.record({ kind: fc.constant('timeout-now'), ...head }),
}
export const raft: fc.Arbitrary<Message> = fc.oneof(...Object.values(RAFT))

const shard = fc.oneof(fc.nat(255), fc.nat(0xffff_ffff))

const PEER: {
  readonly [K in PeerMessage['kind']]: fc.Arbitrary<Extract<PeerMessage, { kind: K }>>
} = {
  raft: fc.record({ kind: fc.constant('raft'), shard, message: raft }),
  propose: fc.record({
    kind: fc.constant('propose'),
    shard,
    term: whole,
    proposer: text,
    number: whole,
    below: whole,
    command: bytes,
  }),
  'propose-answer': fc.record({
    kind: fc.constant('propose-answer'),
    shard,
    term: whole,
    number: whole,
    refusal: fc.option(fc.constantFrom(...REFUSALS), { nil: undefined }),
    leader,
  }),
  read: fc.record({ kind: fc.constant('read'), shard, id: whole }),
  'read-answer': fc.record({
    kind: fc.constant('read-answer'),
    shard,
    id: whole,
    index: fc.option(whole, { nil: undefined }),
    leader,
  }),
  'feed-request': fc.record({
    kind: fc.constant('feed-request'),
    shard,
    fromIndex: whole,
    held: fc.option(fc.record({ index: whole, bytes: whole }), { nil: undefined }),
  }),
  feed: fc.record({
    kind: fc.constant('feed'),
    shard,
    entries: index.chain(following),
  }),
  'feed-snapshot': part.chain((piece) =>
    fc.record({
      kind: fc.constant('feed-snapshot'),
      shard,
      index: whole,
      term: whole,
      members,
      totalBytes: fc.constant(piece.totalBytes),
      offset: fc.constant(piece.offset),
      bytes: fc.constant(piece.bytes),
    }),
  ),
  'feed-end': fc.record({ kind: fc.constant('feed-end'), shard, leader }),
}
export const peerMessage: fc.Arbitrary<PeerMessage> = fc.oneof(...Object.values(PEER))

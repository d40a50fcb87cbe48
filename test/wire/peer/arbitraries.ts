// Arbitrary messages between brokers, as a broker might send them.

import fc from 'fast-check'
import { ERRORS, type ErrorCode } from '../../../src/base/errors.ts'
import { type NodeId, nodeId, type TopicId } from '../../../src/model/ids.ts'
import {
  type AppendAnswer,
  type Entry,
  type Members,
  type Message,
  type Payload,
  REFUSALS,
} from '../../../src/model/raft.ts'
import { END_REASONS } from '../../../src/model/segment-ends.ts'
import type { SegmentKey } from '../../../src/model/segment-key.ts'
import type { SegmentMessage } from '../../../src/wire/peer/segments.ts'
import type { PeerMessage, ShardMessage } from '../../../src/wire/peer/types.ts'

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

const SHARD: {
  readonly [K in ShardMessage['kind']]: fc.Arbitrary<Extract<ShardMessage, { kind: K }>>
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

const key: fc.Arbitrary<SegmentKey> = fc.record({
  topicId: fc.stringMatching(/^[0-9a-f]{32}$/) as fc.Arbitrary<TopicId>,
  range: whole,
  segment: whole,
})
const why = fc.constantFrom(...END_REASONS)
const few = { maxLength: 4 }
const shardsAt = fc.array(fc.record({ shard, index: whole }), few)
const failed = fc.array(fc.record({ node, why: text }), few)

const SEGMENT: {
  readonly [K in SegmentMessage['kind']]: fc.Arbitrary<Extract<SegmentMessage, { kind: K }>>
} = {
  'lease-request': fc.record({
    kind: fc.constant('lease-request'),
    seq: whole,
    boot: whole,
    oldestSyncMs: whole,
    stopping: bool,
    diskFull: bool,
    shards: shardsAt,
    unfit: fc.array(fc.record({ key, why, waited: bool }), few),
  }),
  'lease-answer': fc.record({
    kind: fc.constant('lease-answer'),
    seq: whole,
    shards: shardsAt,
    withheld: fc.array(key, few),
  }),
  'ask-end': fc.record({ kind: fc.constant('ask-end'), key, attempt: whole, why }),
  'give-end': fc.record({
    kind: fc.constant('give-end'),
    key,
    boot: whole,
    given: fc.record({ attempt: whole, end: whole, highWatermark: whole, failed, why }),
  }),
  'end-refused': fc.record({
    kind: fc.constant('end-refused'),
    key,
    code: fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[])),
    text,
  }),
  fence: fc.record({ kind: fc.constant('fence'), key }),
  'fence-answer': fc.record({
    kind: fc.constant('fence-answer'),
    key,
    answer: fc.record({
      boot: whole,
      end: whole,
      highWatermark: whole,
      unsure: fc.option(text, { nil: undefined }),
    }),
  }),
  'stage-order': fc.record({
    kind: fc.constant('stage-order'),
    key,
    token: text,
    end: whole,
    tailFrom: whole,
    replicas: nodes,
  }),
  'stage-report': fc.record({
    kind: fc.constant('stage-report'),
    key,
    token: text,
    report: fc.oneof(
      fc.record({ nextOffsets: fc.array(whole, few), stateDigest: text }),
      fc.record({ failed }),
      fc.record({ moved: whole }),
    ),
  }),
  inspect: fc.record({ kind: fc.constant('inspect'), key }),
  'inspect-answer': fc.record({
    kind: fc.constant('inspect-answer'),
    key,
    boot: whole,
    answer: fc.oneof(
      fc.record({ kind: fc.constant('whole' as const), digest: text }),
      fc.record({ kind: fc.constant('part' as const), end: whole }),
      fc.record({ kind: fc.constant('damaged' as const), why: text }),
    ),
  }),
}

export const peerMessage: fc.Arbitrary<PeerMessage> = fc.oneof<fc.Arbitrary<PeerMessage>[]>(
  ...Object.values(SHARD),
  ...Object.values(SEGMENT),
)

// A sealed segment that is not whole here: what is copied from whom, and when a damaged copy makes way.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError } from '../../../src/base/errors.ts'
import type { RangeContext } from '../../../src/broker/range/context.ts'
import type { FetchClient } from '../../../src/broker/replica/fetches.ts'
import { Repairs } from '../../../src/broker/replica/repairs.ts'
import type { Topic } from '../../../src/core/metadata/types.ts'
import type { Entry } from '../../../src/model/entry.ts'
import { type NodeId, nodeId, topicId } from '../../../src/model/ids.ts'
import type { SegmentKey } from '../../../src/model/segment-key.ts'
import { LISTENER, Model, plain, until } from '../../storage/segment/rig.ts'
import { keptLog, manualClock } from '../../storage/support/ports.ts'
import { MemoryStore } from '../support/memory-store.ts'

const [OWN, OTHER, THIRD] = ['a', 'b', 'c'].map((digit) => nodeId(digit.repeat(32))) as [
  NodeId,
  NodeId,
  NodeId,
]
const KEY: SegmentKey = { topicId: topicId('77'.repeat(16)), range: 0, segment: 1 }
const END = 12
const TOKEN = 'd'.repeat(32)

function entries(): readonly Entry[] {
  const model = new Model()
  for (let i = 0; i < END; i++) model.make(0, 100)
  return model.entries
}

interface World {
  readonly store: MemoryStore
  readonly repairs: Repairs
  readonly topic: Topic
  readonly clock: ReturnType<typeof manualClock>
  /** What each other replica has, of the segment itself and by token. */
  readonly others: Map<string, readonly Entry[]>
}

function world(tailFrom?: number): World {
  const store = new MemoryStore()
  const clock = manualClock()
  const others = new Map<string, readonly Entry[]>()
  const tail =
    tailFrom === undefined ? undefined : { from: tailFrom, holders: [OWN, THIRD], token: TOKEN }
  const segment = { segment: 1, endEntry: END, replicas: [OWN, OTHER], digest: '', tail }
  const topic = { topicId: KEY.topicId, ranges: [{ range: 0, segments: [segment] }] } as unknown
  const context = {
    store,
    clock,
    log: keptLog(),
    nodeId: OWN,
    metadata: { state: { topics: new Map([[KEY.topicId, topic]]) } },
    seals: { has: () => true },
  } as unknown as RangeContext
  const fetches = {
    fetch: async (node: NodeId, _key: SegmentKey, token: string | undefined, from: number) => {
      const some = others.get(`${node}${token ?? ''}`) ?? []
      return some.filter(({ entryNumber }) => entryNumber >= from).slice(0, 5)
    },
  } as unknown as FetchClient
  return { store, clock, others, repairs: new Repairs(context, fetches), topic: topic as Topic }
}

/** Time goes on until it is whole, or has had every chance to be. */
async function repaired({ repairs, clock, topic, store }: World): Promise<boolean> {
  repairs.topicChanged(topic, undefined)
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
    const log = store.find(KEY)
    if (log?.sealed === true && log.end === END && log.damage === undefined) return true
    clock.advance(60_000)
  }
  return false
}

test('what is missing at the end comes from another replica, or from the tail that is kept here or elsewhere', async () => {
  for (const from of ['replica', 'own tail', 'tail elsewhere']) {
    const w = world(from === 'replica' ? undefined : 8)
    const log = w.store.create(KEY, LISTENER)
    for (const entry of entries().slice(0, 9)) log.append(entry)
    await log.seal(END)
    if (from === 'replica') w.others.set(OTHER, entries())
    if (from === 'own tail') w.store.tails.set(`${KEY.topicId}/0/1.${TOKEN}`, entries().slice(8))
    if (from === 'tail elsewhere') w.others.set(`${THIRD}${TOKEN}`, entries().slice(8))
    assert.ok(await repaired(w), from)
    assert.deepEqual(plain(w.store.find(KEY)?.entries), plain(entries()), from)
  }
})

test('a damaged copy makes way when another replica has all of the segment, and not before', async () => {
  const w = world()
  const damaged = w.store.create(KEY, LISTENER)
  for (const entry of entries()) damaged.append(entry)
  damaged.damage = 'a bit was flipped'
  w.others.set(OTHER, entries().slice(0, END - 1))
  assert.equal(await repaired(w), false)
  assert.equal(w.store.find(KEY), damaged, 'it may be the only one with the last entry')
  w.others.set(OTHER, entries())
  assert.ok(await repaired(w))
  assert.notEqual(w.store.find(KEY), damaged)
  assert.deepEqual(plain(w.store.find(KEY)?.entries), plain(entries()))
})

test('a damaged tail here is as none: others keep it too', async () => {
  const w = world(8)
  const log = w.store.create(KEY, LISTENER)
  for (const entry of entries().slice(0, 8)) log.append(entry)
  await log.seal(END)
  w.store.loadTail = () => Promise.reject(new EastGuardError('DAMAGED', 'a bit was flipped'))
  w.others.set(`${THIRD}${TOKEN}`, entries().slice(8))
  assert.ok(await repaired(w))
  await until(() => w.repairs.underWay === 0)
})

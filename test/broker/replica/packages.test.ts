// What a holder is told of the packages that it sent.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { DataLinks } from '../../../src/broker/data/types.ts'
import type { RangeContext } from '../../../src/broker/range/context.ts'
import { PackageReceiver } from '../../../src/broker/replica/packages.ts'
import { StagedBook } from '../../../src/broker/replica/staged.ts'
import { nodeId, topicId } from '../../../src/model/ids.ts'
import { placeOfKey } from '../../../src/model/segment-key.ts'
import type { DataWord, Stage } from '../../../src/wire/data/types.ts'
import { Model } from '../../storage/segment/rig.ts'

const HOLDER = nodeId('aa'.repeat(16))

function stageOf(order: number, segment: number): Stage {
  const state = new Uint8Array(3)
  return {
    kind: 'stage',
    order,
    key: { topicId: topicId('77'.repeat(16)), range: 0, segment },
    token: `${segment}`.repeat(32),
    tailFrom: 0,
    end: 0,
    stateBytes: state.length,
    stateOffset: 0,
    state,
    last: true,
    place: undefined,
    entries: [],
  }
}

interface World {
  readonly receiver: PackageReceiver
  readonly told: DataWord[]
  /** Of each package that is being stored: it is durable. */
  readonly writes: (() => void)[]
}

function world(): World {
  const told: DataWord[] = []
  const writes: (() => void)[] = []
  const context = {
    staged: new StagedBook(),
    stored: () => {},
    store: { stagePackage: () => new Promise<void>((resolve) => writes.push(resolve)) },
  } as unknown as RangeContext
  const links = {
    send: (_to: unknown, word: DataWord) => told.push(word) > 0,
  } as unknown as DataLinks
  return { receiver: new PackageReceiver(context, links), told, writes }
}

test('a package that an earlier connection brought is no answer to the number that a new one gives to another', async () => {
  const { receiver, told, writes } = world()
  receiver.receive(HOLDER, stageOf(1, 2))
  // The holder restarts: its orders begin at 1 again.
  receiver.link(HOLDER)
  receiver.receive(HOLDER, stageOf(1, 5))
  writes[0]?.()
  await turn()
  assert.deepEqual(told, [])
  writes[1]?.()
  await turn()
  assert.deepEqual(told, [{ kind: 'stage-stored', order: 1, failed: undefined }])
})

test('of a package that was given up and begun anew only the new one is kept', async () => {
  const { receiver, told, writes } = world()
  const whole = stageOf(1, 2)
  const [first, rest] = [whole.state.subarray(0, 1), whole.state.subarray(1)]
  receiver.receive(HOLDER, { ...whole, state: first, last: false })
  receiver.receive(HOLDER, { ...whole, order: 2, state: first, last: false })
  // What was still on its way of the first finds nothing to go on with.
  receiver.receive(HOLDER, { ...whole, state: rest, stateOffset: 1 })
  assert.equal(writes.length, 0)
  receiver.receive(HOLDER, { ...whole, order: 2, state: rest, stateOffset: 1 })
  writes[0]?.()
  await turn()
  assert.deepEqual(told, [{ kind: 'stage-stored', order: 2, failed: undefined }])
})

test('a tail of another segment than the one before the successor is not stored', async () => {
  const { receiver, told, writes } = world()
  const { key } = stageOf(1, 2)
  const stage = { ...stageOf(1, 2), tailFrom: 0, end: 1, entries: [new Model().make(0, 100)] }
  receiver.receive(HOLDER, { ...stage, place: placeOfKey(key) })
  await turn()
  assert.equal(writes.length, 0)
  assert.match(JSON.stringify(told), /something else/)
  receiver.receive(HOLDER, { ...stage, order: 2, place: placeOfKey({ ...key, segment: 1 }) })
  assert.equal(writes.length, 1)
})

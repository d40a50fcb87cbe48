// What a holder is told of the packages that it sent, and how long it waits for that.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { DataLinks, FlowOptions } from '../../../src/broker/data/types.ts'
import type { RangeContext } from '../../../src/broker/range/context.ts'
import { PackageReceiver, PackageSender } from '../../../src/broker/replica/packages.ts'
import { StagedBook } from '../../../src/broker/replica/staged.ts'
import { SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import { nodeId, topicId } from '../../../src/model/ids.ts'
import { placeOfKey } from '../../../src/model/segment-key.ts'
import type { DataWord, Stage } from '../../../src/wire/data/types.ts'
import { Model } from '../../storage/segment/rig.ts'
import { type ManualClock, manualClock } from '../../storage/support/ports.ts'

const HOLDER = nodeId('aa'.repeat(16))
const ANOTHER = nodeId('cc'.repeat(16))
const MIB = 1024 * 1024
const { stageTimeoutMs } = SEGMENT_TIMING

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
  readonly clock: ManualClock
}

function world(): World {
  const told: DataWord[] = []
  const writes: (() => void)[] = []
  const clock = manualClock()
  const context = {
    clock,
    timing: SEGMENT_TIMING,
    staged: new StagedBook(),
    stored: () => {},
    store: { stagePackage: () => new Promise<void>((resolve) => writes.push(resolve)) },
  } as unknown as RangeContext
  const links = {
    send: (_to: unknown, word: DataWord) => told.push(word) > 0,
  } as unknown as DataLinks
  return { receiver: new PackageReceiver(context, links), told, writes, clock }
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

test('a package that comes again while it is being written is not written twice at a time', async () => {
  const { receiver, told, writes } = world()
  receiver.receive(HOLDER, stageOf(1, 2))
  receiver.link(HOLDER)
  receiver.receive(HOLDER, stageOf(1, 2))
  assert.equal(writes.length, 1)
  writes[0]?.()
  await turn()
  assert.deepEqual(told, [{ kind: 'stage-stored', order: 1, failed: undefined }])
})

test('of a package that was given up nothing is kept', async () => {
  const { receiver, told, writes } = world()
  const whole = stageOf(1, 2)
  const [first, rest] = [whole.state.subarray(0, 1), whole.state.subarray(1)]
  receiver.receive(HOLDER, { ...whole, state: first, last: false })
  receiver.receive(HOLDER, { ...whole, order: 2, state: first, last: false })
  receiver.dropped(HOLDER, { kind: 'stage-dropped', order: 1 })
  // Nor is there anything to go on with.
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

const STEP_MS = 100

/** The first part of a large one. */
function announced(order: number, stateBytes: number): Stage {
  return { ...stageOf(order, order), stateBytes, last: false }
}

function refusals(told: readonly DataWord[]): readonly number[] {
  return told.map((word) => {
    assert.equal(word.kind, 'stage-stored')
    assert.match(word.failed ?? '', /no room/)
    return word.order
  })
}

test('what is announced is refused before it is there when others have taken the room, from whichever holders', () => {
  const { receiver, told } = world()
  for (let order = 1; order <= 200; order++) {
    receiver.receive(order % 2 === 0 ? HOLDER : ANOTHER, announced(order, 4 * MIB))
  }
  const taken = 64
  assert.deepEqual(
    refusals(told),
    Array.from({ length: 200 - taken }, (_, i) => taken + 1 + i),
  )
  // Nothing of a large one that is refused is in the way of the others, nor of those that come in one part.
  receiver.receive(HOLDER, { ...stageOf(1000, 9), state: new Uint8Array(4), stateBytes: 4 })
  assert.equal(told.length, 200 - taken)
})

test('room is there again when a holder gives up what it sent, its link breaks, or all of it is on the disk', async () => {
  const { receiver, told, writes } = world()
  const large = announced(1, 256 * MIB - 3)
  receiver.receive(HOLDER, large)
  receiver.dropped(HOLDER, { kind: 'stage-dropped', order: 1 })
  receiver.receive(HOLDER, { ...large, order: 2 })
  receiver.link(HOLDER)
  receiver.receive(ANOTHER, announced(3, 200 * MIB))
  receiver.receive(HOLDER, { ...stageOf(4, 2), last: false, stateBytes: 56 * MIB })
  assert.deepEqual(told, [])
  const rest = new Uint8Array(56 * MIB - 3)
  receiver.receive(HOLDER, { ...stageOf(4, 2), stateBytes: 56 * MIB, state: rest, stateOffset: 3 })
  // It is still in memory while it is being written, and when its link has broken.
  receiver.link(HOLDER)
  receiver.receive(HOLDER, announced(5, MIB))
  assert.deepEqual(refusals(told), [5])
  writes[0]?.()
  await turn()
  receiver.receive(HOLDER, announced(6, 56 * MIB))
  assert.equal(told.length, 1)
})

test('where room is short, what nobody has sent anything of for long makes way', () => {
  const { receiver, told, clock } = world()
  receiver.receive(HOLDER, announced(1, 100 * MIB))
  receiver.receive(ANOTHER, announced(2, 100 * MIB))
  clock.advance(stageTimeoutMs)
  const more = { ...announced(2, 100 * MIB), stateOffset: 3 }
  receiver.receive(ANOTHER, more)
  receiver.receive(ANOTHER, announced(3, 57 * MIB))
  assert.deepEqual(refusals(told), [3])
  clock.advance(1)
  receiver.receive(ANOTHER, announced(4, 57 * MIB))
  assert.deepEqual(
    told.slice(1).map((word) => word.kind === 'stage-stored' && word.order),
    [1],
  )
  // Who moves is not driven out.
  receiver.receive(ANOTHER, { ...more, stateOffset: 6 })
  assert.equal(told.length, 2)
})

test('a tail may be no larger than what was announced leaves room for', () => {
  const { receiver, told, writes } = world()
  const entry = new Model().make(0, 100)
  const part = { ...stageOf(1, 2), end: 1, entries: [entry] }
  receiver.receive(HOLDER, { ...part, last: false, stateBytes: 256 * MIB - 50 })
  assert.equal(writes.length, 0)
  assert.match(JSON.stringify(told), /is larger than/)
})

/** A link to a replica that takes so many bytes in each step. */
class SlowLink {
  readonly clock = manualClock()
  readonly sender: PackageSender
  bytesPerStep = MIB / 4
  /** How the package that was sent ended. */
  outcome: string | undefined
  moved = 0
  readonly words: DataWord[] = []
  private readonly flows: FlowOptions[] = []

  constructor() {
    const { clock } = this
    const context = { clock, timing: SEGMENT_TIMING, nodeId: nodeId('bb'.repeat(16)) }
    const links = {
      flow: (_to: unknown, flow: FlowOptions) => {
        this.flows.push(flow)
        const close = (): void => void this.flows.splice(this.flows.indexOf(flow), 1)
        return { ready: () => {}, close }
      },
      send: (_to: unknown, word: DataWord) => this.words.push(word) > 0,
    }
    this.sender = new PackageSender(
      context as unknown as RangeContext,
      links as unknown as DataLinks,
    )
  }

  store(stateBytes: number): void {
    const { key, token } = stageOf(1, 2)
    const pack = { key, token, state: new Uint8Array(stateBytes), tailFrom: 0, tail: [] }
    const moved = (bytes: number): void => {
      this.moved += bytes
    }
    this.sender.store(HOLDER, pack, moved).then(
      () => {
        this.outcome = 'stored'
      },
      (error: Error) => {
        this.outcome = error.message
      },
    )
  }

  async passes(ms: number): Promise<void> {
    for (let passed = 0; passed < ms && this.outcome === undefined; passed += STEP_MS) {
      for (const flow of this.flows) if (this.bytesPerStep > 0) flow.fill(this.bytesPerStep)
      this.clock.advance(STEP_MS)
      await turn()
    }
  }
}

test('a package is waited for as long as the link takes of it, and then as long as a disk may need', async () => {
  const link = new SlowLink()
  link.store(40 * MIB)
  await link.passes(16_000)
  assert.equal(link.moved, 40 * MIB)
  await link.passes(stageTimeoutMs + 9000)
  assert.equal(link.outcome, undefined)
  link.sender.stored(HOLDER, { kind: 'stage-stored', order: 1, failed: undefined })
  await turn()
  assert.equal(link.outcome, 'stored')
})

test('a package is not waited for when its replica never says what became of it', async () => {
  const link = new SlowLink()
  link.store(MIB)
  await link.passes(stageTimeoutMs + 1000)
  assert.match(link.outcome ?? '', /has not stored/)
})

test('a package of which the link takes no more is given up, and so is one that never gets farther than before the link broke', async () => {
  const stuck = new SlowLink()
  stuck.store(40 * MIB)
  await stuck.passes(8000)
  stuck.bytesPerStep = 0
  await stuck.passes(stageTimeoutMs - 2 * STEP_MS)
  assert.equal(stuck.outcome, undefined)
  await stuck.passes(STEP_MS)
  assert.match(stuck.outcome ?? '', /taken nothing/)
  assert.deepEqual(stuck.words, [{ kind: 'stage-dropped', order: 1 }])

  const broken = new SlowLink()
  broken.store(40 * MIB)
  await broken.passes(3000)
  for (let i = 0; i < 4; i++) {
    broken.sender.link(HOLDER, false)
    broken.sender.link(HOLDER, true)
    await broken.passes(2000)
  }
  assert.match(broken.outcome ?? '', /taken nothing/)
  assert.equal(broken.moved, 30 * (MIB / 4))
})

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
import { manualClock } from '../../storage/support/ports.ts'

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

const { stageTimeoutMs } = SEGMENT_TIMING
const STEP_MS = 100
const MIB = 1024 * 1024

/** A link to a replica that takes so many bytes in each step. */
class SlowLink {
  readonly clock = manualClock()
  readonly sender: PackageSender
  bytesPerStep = MIB / 4
  /** How the package that was sent ended. */
  outcome: string | undefined
  moved = 0
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

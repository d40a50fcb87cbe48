// How long a coordinator's order for a successor lives, and what is said of it meanwhile.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { RangeContext } from '../../../src/broker/range/context.ts'
import type { RangeCopy } from '../../../src/broker/range/copy.ts'
import { RangeLeader } from '../../../src/broker/range/leader.ts'
import { type StageOrder, type StagePackage, Stager } from '../../../src/broker/replica/stager.ts'
import type { RollSegment } from '../../../src/core/metadata/commands.ts'
import { apply } from '../../../src/core/metadata/machine.ts'
import { RangeState } from '../../../src/core/producers/range-state.ts'
import { SegmentLeader } from '../../../src/core/segment/leader.ts'
import { SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import { nodeId, topicId } from '../../../src/model/ids.ts'
import type { StageReport } from '../../../src/model/segment-ends.ts'
import { manualClock } from '../../storage/support/ports.ts'
import { A, B, C, Rig } from './rig.ts'

const OTHER = nodeId('bb'.repeat(16))
const KEY = { topicId: topicId('77'.repeat(16)), range: 0, segment: 1 }

interface Sent {
  readonly pack: StagePackage
  moved(bytes: number): void
  stored(): void
}

class World {
  readonly clock = manualClock()
  readonly told: StageReport[] = []
  readonly sent: Sent[] = []
  readonly givenUp: string[] = []
  readonly segment = new SegmentLeader({ followers: [OTHER], attempt: 0, timing: SEGMENT_TIMING })
  readonly stager: Stager
  private readonly copy: RangeCopy

  constructor() {
    const state = new RangeState(0, [0], 1000)
    state.begin(0)
    const role = Object.assign(Object.create(RangeLeader.prototype), { segment: this.segment })
    const copy = { key: KEY, status: 'live', state, role, ensureLoaded: async () => {} }
    this.copy = copy as unknown as RangeCopy
    const context = {
      clock: this.clock,
      producerIdExpiryMs: 1000,
      hooks: {
        staged: (_key: unknown, _token: unknown, report: StageReport) => this.told.push(report),
      },
    }
    this.stager = new Stager(context as unknown as RangeContext, {
      store: (_node, pack, moved) =>
        new Promise<void>((stored) => this.sent.push({ pack, moved, stored })),
      giveUp: (token) => this.givenUp.push(token),
    })
  }

  async order(token: string): Promise<void> {
    const order: StageOrder = { key: KEY, token, end: 0, tailFrom: 0, replicas: [OTHER] }
    this.stager.stage(this.copy, order)
    await turn()
  }
}

test('an order that is repeated is answered with how much has moved, until there is an outcome', async () => {
  const world = new World()
  await world.order('one')
  const [sent] = world.sent
  const stateBytes = sent?.pack.state.length ?? 0
  await world.order('one')
  sent?.moved(700)
  await world.order('one')
  assert.deepEqual(world.told, [{ moved: stateBytes }, { moved: stateBytes + 700 }])
  sent?.stored()
  await turn()
  await world.order('one')
  assert.equal(world.sent.length, 1)
  const outcomes = world.told.slice(2).map((report) => 'stateDigest' in report)
  assert.deepEqual(outcomes, [true, true])
})

test('packages under a token that was given up are sent no further', async () => {
  const world = new World()
  await world.order('one')
  await world.order('two')
  assert.deepEqual(world.givenUp, ['one'])
  world.sent[0]?.stored()
  await turn()
  assert.deepEqual(world.told, [])
  world.stager.forget(KEY)
  assert.deepEqual(world.givenUp, ['one', 'two'])
})

/** A leader stages a successor, and nobody says that it is stored. */
async function staging(): Promise<{ rig: Rig; givenUp: string[] }> {
  const rig = await Rig.make({ segmentEntries: 1 })
  let asked = 0
  for (const id of [B, C]) {
    rig.node(id).store.stagePackage = () => {
      asked++
      return new Promise(() => {})
    }
  }
  void rig.produce(A, '0')
  await rig.until('it is staged', () => asked === 2)
  const givenUp: string[] = []
  const roads = rig.node(A).broker['stager']['roads']
  const giveUp = roads.giveUp.bind(roads)
  roads.giveUp = (token) => {
    givenUp.push(token)
    giveUp(token)
  }
  return { rig, givenUp }
}

function rollOf(rig: Rig, segment: number): RollSegment {
  return {
    kind: 'RollSegment',
    ...rig.key,
    segment,
    attempt: 0,
    endEntry: 2 - segment,
    tailFrom: 0,
    nextOffsets: [1, 0],
    placement: { replicas: [B, C], token: `${segment}`.repeat(32), stateDigest: '' },
    timeMs: 2,
  }
}

test('packages of a segment that others have ended are sent no further, though the next one has ended by then', async () => {
  const { rig, givenUp } = await staging()
  await using _ = rig
  apply(rig.metadata.state, rollOf(rig, 1), rig.metadata.state.appliedIndex + 1)
  assert.ok((await rig.metadata.propose(rollOf(rig, 2))).ok)
  assert.equal(givenUp.length, 1)
})

test('packages of a topic that is deleted are sent no further', async () => {
  const { rig, givenUp } = await staging()
  await using _ = rig
  await rig.metadata.propose({ kind: 'DeleteTopic', topicId: rig.key.topicId })
  assert.equal(givenUp.length, 1)
})

test('a leader that hands on what it has takes its end not back meanwhile', async () => {
  const { frozenTimeoutMs } = SEGMENT_TIMING
  const world = new World()
  const { clock, segment } = world
  segment.roll('full')
  segment.tick(clock.monotonic())
  await world.order('one')
  for (let i = 0; i < 5; i++) {
    clock.advance(frozenTimeoutMs - 1000)
    world.sent[0]?.moved(1)
    clock.advance(500)
    segment.tick(clock.monotonic())
    assert.equal(segment.wantsCancel, false)
  }
  clock.advance(frozenTimeoutMs)
  segment.tick(clock.monotonic())
  assert.equal(segment.wantsCancel, true)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Candidates } from '../../../src/core/segment/care-types.ts'
import {
  SealedCare,
  type SealedEffect,
  type SealedView,
} from '../../../src/core/segment/sealed-care.ts'
import { type InspectAnswer, SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import { type NodeId, topicId } from '../../../src/model/ids.ts'
import { idOf, nameOf } from './care-script.ts'

const WHOLE: InspectAnswer = { kind: 'whole', digest: 'd' }
const PART: InspectAnswer = { kind: 'part', end: 3 }
const { repairDelayMs } = SEGMENT_TIMING

type Change = Exclude<SealedEffect, { kind: 'inspect' | 'log' }>

/** Brokers that hold what the test says, and a log that applies every proposal in the next tick, unless it stands still. */
class World {
  nowMs = 0
  view: SealedView
  readonly care: SealedCare
  readonly holds = new Map<NodeId, InspectAnswer>()
  readonly dead = new Set<NodeId>()
  readonly leaving = new Set<NodeId>()
  readonly full = new Set<NodeId>()
  readonly boots = new Map<NodeId, number>()
  readonly told: string[] = []
  readonly alarms: string[] = []
  names: string
  answering = true
  /** What is proposed while the log stands still. */
  waiting: Change[] | undefined
  onChange: (change: Change) => void = () => undefined

  constructor(names: string, replicas: string, digest = '', replicationFactor = 3) {
    this.names = names
    for (const name of names) this.boots.set(idOf(name), 1)
    this.view = {
      topicId: topicId('0'.repeat(32)),
      range: 0,
      segment: { segment: 1, replicas: ids(replicas), digest },
      policy: { replicationFactor, minInsyncReplicas: 2 },
    }
    for (const id of ids(replicas)) this.holds.set(id, WHOLE)
    this.care = new SealedCare(this.view, SEGMENT_TIMING)
  }

  candidates(): Candidates {
    const good = (id: NodeId): boolean => !this.dead.has(id) && !this.leaving.has(id)
    return {
      alive: (node) => !this.dead.has(node),
      leaving: (node) => this.leaving.has(node),
      members: () => this.members,
      boot: (node) => this.boots.get(node),
      pick: (n, keep, _first, without = new Set()) => {
        const roomy = ids(this.names).filter((id) => !this.full.has(id))
        const all = [...keep, ...roomy].filter((id) => good(id) && !without.has(id))
        return [...new Set(all)].slice(0, n)
      },
    }
  }

  get members(): number {
    return ids(this.names).filter((id) => !this.leaving.has(id)).length
  }

  passes(ms: number, stepMs = 100): void {
    const until = this.nowMs + ms
    while (this.nowMs < until) {
      this.nowMs += stepMs
      this.care.brokers(this.candidates(), this.nowMs)
      for (const effect of this.care.tick(this.nowMs)) this.does(effect)
    }
  }

  private does(effect: SealedEffect): void {
    if (effect.kind === 'log') {
      if (effect.level === 'error') this.alarms.push(effect.text)
      return
    }
    if (effect.kind === 'inspect') {
      for (const node of effect.to) this.answer(node)
      return
    }
    if (this.waiting === undefined) this.commit(effect)
    else this.waiting.push(effect)
  }

  logGoesOn(): void {
    const waited = this.waiting ?? []
    this.waiting = undefined
    for (const effect of waited) this.commit(effect)
  }

  private commit(effect: Change): void {
    const { segment } = this.view
    const { replicas } = segment
    if (
      effect.kind === 'reassign' &&
      replicas.includes(effect.replica) === (effect.change === 'add')
    )
      return
    if (effect.kind === 'reassign' && effect.seen.join() !== replicas.join()) {
      this.told.push(`refused: ${effect.change} ${nameOf(effect.replica)}`)
      return
    }
    this.onChange(effect)
    if (effect.kind === 'settle') {
      this.told.push(`settle ${effect.digest}`)
      this.apply({ ...segment, digest: effect.digest })
    } else {
      this.told.push(`${effect.change} ${nameOf(effect.replica)}`)
      const others = replicas.filter((node) => node !== effect.replica)
      this.apply({
        ...segment,
        replicas: effect.change === 'add' ? [...replicas, effect.replica] : others,
      })
    }
  }

  answer(node: NodeId): void {
    if (!this.answering || this.dead.has(node)) return
    this.care.inspected(node, this.holds.get(node) ?? PART, this.nowMs, this.boots.get(node) ?? 0)
  }

  private apply(segment: SealedView['segment']): void {
    this.view = { ...this.view, segment }
    this.care.applied(this.view)
  }
}

function ids(names: string): readonly NodeId[] {
  return names.split('').map(idOf)
}

test('a segment is settled when all of its replicas are whole and agree, and not before', () => {
  const world = new World('ABC', 'ABC')
  world.holds.set(idOf('C'), PART)
  world.passes(30_000)
  assert.deepEqual(world.told, [])
  world.holds.set(idOf('C'), WHOLE)
  world.passes(11_000)
  assert.deepEqual(world.told, ['settle d'])
  world.passes(1000)
  assert.equal(world.care.idle, true)
})

test('a replica that is away for a moment is waited for: the segment is not settled without it', () => {
  const world = new World('ABCD', 'ABC')
  world.dead.add(idOf('C'))
  world.passes(repairDelayMs - 1000)
  assert.deepEqual(world.told, [])
  world.dead.delete(idOf('C'))
  world.passes(11_000)
  assert.deepEqual(world.told, ['settle d'])
})

test('a replica that is lost is replaced, and dropped only when the new one has proven itself', () => {
  const world = new World('ABCD', 'ABC', 'd')
  world.dead.add(idOf('C'))
  world.passes(repairDelayMs + 5000)
  assert.deepEqual(world.told, ['add D'])
  world.passes(30_000)
  assert.deepEqual(world.told, ['add D'])
  world.holds.set(idOf('D'), { kind: 'whole', digest: 'another' })
  world.passes(11_000)
  assert.deepEqual(world.told, ['add D'])
  assert.equal(world.alarms.length, 1)
  world.holds.set(idOf('D'), WHOLE)
  world.passes(11_000)
  assert.deepEqual(world.told, ['add D', 'drop C'])
  world.passes(1000)
  assert.equal(world.care.idle, true)
})

test('an unsettled segment whose replica is lost is settled by those that are left before another takes its place', () => {
  const world = new World('ABCD', 'ABC')
  world.dead.add(idOf('C'))
  world.passes(repairDelayMs + 5000)
  world.holds.set(idOf('D'), WHOLE)
  world.passes(20_000)
  assert.deepEqual(world.told, ['settle d', 'add D', 'drop C'])
})

test('digests that differ are not put to a vote', () => {
  const world = new World('ABC', 'ABC')
  world.holds.set(idOf('C'), { kind: 'whole', digest: 'other' })
  world.passes(60_000)
  assert.deepEqual(world.told, [])
  assert.equal(world.alarms.length, 1)
  assert.match(world.care.trouble ?? '', /differ/)
})

test('what is wrong is told as long as it is so, and no longer', () => {
  const world = new World('ABC', 'ABC', 'd')
  for (const name of 'ABC') world.dead.add(idOf(name))
  world.passes(1000)
  assert.match(world.care.trouble ?? '', /^unavailable/)
  world.dead.delete(idOf('A'))
  world.passes(1000)
  assert.equal(world.care.trouble, undefined)
  world.holds.set(idOf('A'), { kind: 'whole', digest: 'other' })
  world.passes(11_000)
  assert.match(world.care.trouble ?? '', /differ/)
  world.holds.set(idOf('A'), WHOLE)
  world.passes(11_000)
  assert.equal(world.care.trouble, undefined)
  assert.equal(world.care.idle, false)
})

test('a replica that is damaged is waited for, and named', () => {
  const world = new World('ABC', 'ABC')
  world.holds.set(idOf('C'), { kind: 'damaged', why: 'a bad checksum' })
  world.passes(20_000)
  assert.deepEqual(world.told, [])
  world.holds.set(idOf('C'), WHOLE)
  world.passes(11_000)
  assert.deepEqual(world.told, ['settle d'])
})

test('a drained broker is replaced at once; with nobody to take its place it goes when the others have all', () => {
  const world = new World('ABCD', 'ABC', 'd')
  world.leaving.add(idOf('C'))
  world.passes(1000)
  assert.deepEqual(world.told, ['add D'])
  world.holds.set(idOf('D'), WHOLE)
  world.passes(11_000)
  assert.deepEqual(world.told, ['add D', 'drop C'])

  const small = new World('ABC', 'ABC', 'd')
  small.leaving.add(idOf('C'))
  small.holds.set(idOf('B'), PART)
  small.passes(11_000)
  assert.deepEqual(small.told, [])
  small.holds.set(idOf('B'), WHOLE)
  small.passes(11_000)
  assert.deepEqual(small.told, ['drop C'])
})

test('a drained broker keeps its copy while others are away, however long', () => {
  const world = new World('ABCD', 'ABC', 'd')
  world.dead.add(idOf('D'))
  world.leaving.add(idOf('C'))
  world.passes(SEGMENT_TIMING.repairDelayMs + 60_000, 1000)
  assert.deepEqual(world.told, [])
  world.dead.delete(idOf('D'))
  world.passes(1000)
  assert.deepEqual(world.told, ['add D'])
})

test('a drained broker keeps its copy while who shall take it has no room, however long', () => {
  const world = new World('ABCDE', 'ABC', 'd')
  world.leaving.add(idOf('C'))
  world.full.add(idOf('E'))
  world.passes(1000)
  world.full.add(idOf('D'))
  // D has nothing of it yet, and cannot get more.
  world.passes(repairDelayMs + 60_000, 1000)
  assert.deepEqual(world.told, ['add D'])
  world.full.delete(idOf('D'))
  world.holds.set(idOf('D'), WHOLE)
  world.passes(11_000)
  assert.deepEqual(world.told, ['add D', 'drop C'])
})

test('a segment that opened on too few brokers gets more when they come', () => {
  const world = new World('AB', 'AB', 'd')
  world.passes(5000)
  assert.equal(world.care.idle, true)
  world.names = 'ABC'
  world.passes(5000)
  assert.deepEqual(world.told, ['add C'])
})

test('who comes back after it was replaced is one too many: one is dropped, and three proven stay', () => {
  const world = new World('ABCD', 'ABC', 'd')
  world.dead.add(idOf('C'))
  world.passes(repairDelayMs + 1000)
  world.dead.delete(idOf('C'))
  world.passes(11_000)
  // D has nothing yet, and is the one too many now.
  assert.deepEqual(world.told, ['add D', 'drop D'])
})

test('a new replica that does not become whole is replaced in its turn', () => {
  const world = new World('ABCDE', 'ABC', 'd')
  world.dead.add(idOf('C'))
  world.holds.set(idOf('E'), WHOLE)
  world.passes(repairDelayMs + 1000)
  assert.deepEqual(world.told, ['add D'])
  world.passes(repairDelayMs + 20_000)
  assert.deepEqual(world.told.slice(0, 2), ['add D', 'add E'])
  world.passes(20_000)
  assert.deepEqual(world.view.segment.replicas.map(nameOf), ['A', 'B', 'E'])
})

test('a drop that is proposed while another may still commit cannot follow it', () => {
  const world = new World('ABCD', 'ABCD', 'd')
  world.waiting = []
  world.passes(3000)
  world.holds.set(idOf('C'), { kind: 'damaged', why: 'a bad block' })
  world.passes(12_000)
  world.logGoesOn()
  assert.deepEqual(world.told.slice(0, 2), ['drop D', 'refused: drop C'])
  assert.equal(world.view.segment.replicas.length, 3)
})

test('what a replica said before its restart proves nothing', () => {
  const world = new World('ABCD', 'ABC', 'd')
  world.leaving.add(idOf('C'))
  world.holds.set(idOf('D'), WHOLE)
  world.passes(200)
  assert.deepEqual(world.told, ['add D'])
  world.boots.set(idOf('A'), 2)
  world.holds.set(idOf('A'), { kind: 'damaged', why: 'a bad checksum' })
  world.passes(repairDelayMs / 2)
  assert.deepEqual(world.told, ['add D'])
})

test('whatever comes and goes: nothing is dropped that leaves too few whole copies, and in the end all is well', () => {
  const event = fc.record({
    kind: fc.constantFrom(
      'die',
      'live',
      'restart',
      'part',
      'whole',
      'fill',
      'empty',
      'drain',
      'stay',
    ),
    name: fc.constantFrom('A', 'B', 'C', 'D', 'E'),
    afterMs: fc.constantFrom(100, 1000, 12_000, 70_000),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 25 }), fc.constantFrom('', 'd'), (events, digest) => {
      const world = new World('ABCDE', 'ABC', digest)
      const whole = (node: NodeId): boolean => (world.holds.get(node) ?? PART).kind === 'whole'
      world.onChange = (change) => {
        if (change.kind === 'settle') {
          assert.ok(world.view.segment.replicas.filter(whole).length >= 2, 'settled on too few')
        } else if (change.change === 'drop') {
          assert.notEqual(world.view.segment.digest, '', 'drops before it is settled')
          const left = world.view.segment.replicas.filter((node) => node !== change.replica)
          assert.ok(
            left.filter(whole).length >= Math.max(2, Math.min(3, world.members)),
            `drops with too few whole: ${world.told.join()}`,
          )
        }
      }
      for (const { kind, name, afterMs } of events) {
        const id = idOf(name)
        if (kind === 'die') world.dead.add(id)
        else if (kind === 'live') world.dead.delete(id)
        else if (kind === 'restart') world.boots.set(id, (world.boots.get(id) ?? 0) + 1)
        else if (kind === 'whole') world.holds.set(id, WHOLE)
        else if (kind === 'fill') world.full.add(id)
        else if (kind === 'empty') world.full.delete(id)
        else if (kind === 'drain') world.leaving.add(id)
        else if (kind === 'stay') world.leaving.delete(id)
        else {
          // A disk fails by a restart: the process does not lose what it holds while it runs.
          world.holds.set(id, PART)
          world.boots.set(id, (world.boots.get(id) ?? 0) + 1)
        }
        world.passes(afterMs, 500)
      }
      for (const name of world.names) {
        world.holds.set(idOf(name), WHOLE)
        world.leaving.delete(idOf(name))
        world.dead.delete(idOf(name))
        world.full.delete(idOf(name))
      }
      world.passes(100_000, 500)
      assert.equal(world.care.idle, true)
      assert.equal(world.view.segment.replicas.length, 3)
      assert.equal(world.view.segment.digest, 'd')
    }),
    { numRuns: 150 },
  )
})

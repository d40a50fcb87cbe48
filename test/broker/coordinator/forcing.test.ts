// An operator ends what no coordinator can.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EastGuardError } from '../../../src/base/errors.ts'
import { forceEnd } from '../../../src/broker/forcing.ts'
import type { Topic } from '../../../src/core/metadata/types.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import { redirectIn } from '../../../src/model/redirect.ts'
import { node } from '../../core/metadata/support.ts'
import { World } from './world.ts'

const DOUBT = 'part of its log is lost'

/** The leader has started again and is not sure; the other replica is away. */
async function stuck(): Promise<{ world: World; topicId: TopicId }> {
  const world = new World(3)
  const topicId = world.create('a', [2, 3])
  const text = `${topicId}/0/1`
  await world.run(500)
  world.cut.add(node(3))
  world.dead.add(node(3))
  world.machine(2).entries.set(text, 7)
  world.machine(2).doubts.set(text, DOUBT)
  world.stop(world.machine(2))
  world.start(world.machine(2))
  await world.run(20_000)
  assert.deepEqual(world.rolls, [])
  return { world, topicId }
}

/** As a broker answers it. */
function force(world: World, number: number, topicId: TopicId, segment: number, end: number) {
  const topic = world.state.topics.get(topicId) as Topic
  const asked = { topic: topic.name, range: 0, segment, end }
  const control = world.machine(number).control ?? {}
  return forceEnd(topic, asked, control, (nodeId) => {
    return [{ nodeId, address: { host: 'there', port: 7 } }]
  })
}

function refusal(run: () => unknown): EastGuardError {
  try {
    run()
  } catch (error) {
    if (error instanceof EastGuardError) return error
    throw error
  }
  throw new Error('it was not refused')
}

describe('an end by force', () => {
  it('is told of with all that is known, and nothing is done', async () => {
    const { world, topicId } = await stuck()
    assert.deepEqual(force(world, 1, topicId, -1, -1), {
      segment: 1,
      answers: [{ node: node(2), end: 7, unsure: DOUBT }],
      silent: [node(3)],
      highWatermark: 7,
    })
    await world.run(5000)
    assert.deepEqual(world.rolls, [])
  })

  it('ends the segment where the operator says', async () => {
    const { world, topicId } = await stuck()
    assert.equal(force(world, 1, topicId, 1, 5).segment, 1)
    await world.run(100)
    assert.equal(world.sealed(topicId)?.endEntry, 5)
    assert.deepEqual(world.replicasOf(topicId)[0], 2)
    const again = refusal(() => force(world, 1, topicId, 1, 5))
    assert.match(again.message, /segment 1 of range 0 is not the open one: that is 2/)
  })

  it('is not behind what any replica has, nor of another segment or range', async () => {
    const { world, topicId } = await stuck()
    const beyond = refusal(() => force(world, 1, topicId, 1, 8))
    assert.equal(beyond.code, 'END_NOT_FORCED')
    assert.match(beyond.message, /no replica that is there has 8 entries/)
    assert.match(refusal(() => force(world, 1, topicId, 2, 5)).message, /is not the open one/)
    await world.run(1000)
    assert.deepEqual(world.rolls, [])
  })

  it('is refused while the range is well, or its end can still be found', async () => {
    const world = new World(2)
    const topicId = world.create('a', [2, 1])
    await world.run(500)
    assert.equal(refusal(() => force(world, 1, topicId, -1, -1)).code, 'END_NOT_FORCED')
    assert.equal(refusal(() => force(world, 1, topicId, 1, 0)).code, 'END_NOT_FORCED')
    await world.run(500)
    assert.deepEqual(world.rolls, [])
  })

  it('is decided by who coordinates the topic: others name it', async () => {
    const { world, topicId } = await stuck()
    const elsewhere = refusal(() => force(world, 2, topicId, 1, 5))
    assert.equal(elsewhere.code, 'NOT_LEADER')
    assert.deepEqual(redirectIn(elsewhere).brokers, [
      { nodeId: node(1), address: { host: 'there', port: 7 } },
    ])
  })
})

// What happens in a world: proposals and reads at any broker, steps of membership, hand-overs, crashes and cuts.

import type { Prng } from '../../../src/base/prng.ts'
import type { ShardedLog } from '../../../src/broker/metadata/sharded-log.ts'
import { encodeCommand } from '../../../src/core/metadata/command-codec.ts'
import type { MembersChange } from '../../../src/core/raft/types.ts'
import { type NodeId, type TopicId, topicId } from '../../../src/model/ids.ts'
import { newTopicId, shardOfTopic, TOPIC_ID_RANDOM_BYTES } from '../../../src/model/shards.ts'
import { createTopic } from '../../core/metadata/support.ts'
import { isNever, type TopicTruth, type Truth } from './truth.ts'
import { type Broker, SHARDS, World } from './world.ts'

const NAMES = 8
/** So that what is written in a turn has several pages, of which a crash keeps some. */
const LONG = '-and-so-on'.repeat(24)
const STEPS = 60
const STEP_MS = 60
/** What comes before a crash, and the crash. */
const CRASH_MS = 40
const PEACE_MS = 30_000
const NOTHING = encodeCommand({ kind: 'DeleteTopic', topicId: topicId('f'.repeat(32)) })

/** A whole run, to look at. */
export async function runSeed(seed: number): Promise<World> {
  const world = new World(seed)
  for (const broker of world.brokers) world.start(broker)
  await world.run(200)
  for (let step = 0; step < STEPS && world.truth.violations.length === 0; step++) {
    trouble(world)
    await world.run(1 + world.chance.below(STEP_MS))
    lookAll(world)
  }
  if (world.truth.violations.length === 0) await peace(world)
  return world
}

function lookAll({ brokers, truth }: World): void {
  for (const { id, log } of brokers) if (log !== undefined) truth.look(log, id)
  for (let shard = 0; shard < SHARDS; shard++) lookAtLeaders(brokers, truth, shard)
}

/** Who leads for certain is alone in that, and knows all that anybody was answered. */
function lookAtLeaders(brokers: readonly Broker[], truth: Truth, shard: number): void {
  const certain = brokers.filter(({ log }) => log?.shards.holdsLease(shard) === true)
  if (certain.length > 1)
    truth.violated(`${certain.length} brokers lead shard ${shard} for certain`)
  for (const { id, log } of certain) {
    if (log?.shards.leads(shard) === undefined) continue
    const { there, gone } = truth.expected()
    const ofShard = ({ topicId }: TopicTruth): boolean => shardOfTopic(topicId, SHARDS) === shard
    truth.check(log, { there: there.filter(ofShard), gone: gone.filter(ofShard) }, id)
  }
}

function trouble(world: World): void {
  const { chance, brokers } = world
  const broker = oneOf(chance, brokers)
  const { log } = broker
  const what = chance.below(100)
  if (what < 4) crashAmidst(world, broker)
  else if (what < 8) world.cutOff(broker, () => chance.below(4) > 0)
  else if (what < 12) world.heal()
  else if (what < 14) world.lose(chance.float() / 4)
  else if (log === undefined) world.start(broker)
  else if (what < 34) changeMembers(world)
  else if (what < 38) handOver(world)
  else if (what < 55) read(world, log, broker.id)
  else for (let i = chance.below(4); i >= 0; i--) propose(world, log)
}

/** A crash finds much under way: what is written just then may be there in part. */
function crashAmidst(world: World, broker: Broker): void {
  const { chance, clock, brokers } = world
  for (const { log } of brokers) {
    for (let i = chance.below(8); i > 0 && log !== undefined; i--) {
      clock.after(chance.below(CRASH_MS), () => propose(world, log))
    }
  }
  clock.after(chance.below(CRASH_MS), () => world.crash(broker))
}

function changeMembers({ chance, brokers }: World): void {
  const shard = chance.below(SHARDS)
  const leader = brokers.find(({ log }) => log?.shards.view(shard)?.role === 'leader')
  const view = leader?.log?.shards.view(shard)
  if (view === undefined) return
  const { voters, learners } = view.members
  const node = oneOf(chance, brokers).id
  let kind: MembersChange['kind'] = 'add-learner'
  if (learners.includes(node)) kind = chance.below(4) === 0 ? 'remove' : 'promote'
  else if (voters.includes(node)) {
    if (voters.length < 3) return
    kind = 'remove'
  }
  leader?.log?.shards.change(shard, { kind, node })
}

function handOver({ chance, brokers }: World): void {
  const shard = chance.below(SHARDS)
  for (const { log } of brokers) {
    if (log?.shards.view(shard)?.role === 'leader')
      log.shards.handOver(shard, oneOf(chance, brokers).id)
  }
}

function read({ chance, truth }: World, log: ShardedLog, broker: NodeId): void {
  const topic = oneOf(chance, [...truth.topics.values(), undefined])
  if (topic === undefined) return
  const { there, gone } = truth.expected()
  const same = ({ topicId }: { topicId: TopicId }): boolean => topicId === topic.topicId
  const expected = { there: there.filter(same), gone: gone.filter(same) }
  log.fresh({ topicId: topic.topicId }).then(
    () => {
      truth.freshReads++
      truth.check(log, expected, broker)
    },
    () => undefined,
  )
}

function propose(world: World, log: ShardedLog): void {
  const what = world.chance.below(10)
  if (what < 5) create(world, log)
  else if (what < 8) remove(world, log)
  else allocate(world, log)
}

export function create({ chance, truth }: World, log: ShardedLog): void {
  const name = `topic-${chance.below(NAMES)}${LONG}`
  const id = newTopicId(name, chance.bytes(TOPIC_ID_RANDOM_BYTES))
  const topic: TopicTruth = { topicId: id, name, created: 'open', deletions: 0, deleted: false }
  truth.topics.set(id, topic)
  const is = (created: 'made' | 'never'): void => {
    truth.answered++
    topic.created = created
  }
  log.propose(createTopic({ name, topicId: id })).then(
    (result) => {
      if (result.ok && result.answer.topic.topicId !== id)
        truth.violated(`${name} got another's answer`)
      is(result.ok ? 'made' : 'never')
    },
    (error: unknown) => {
      if (isNever(error)) is('never')
    },
  )
}

function remove({ chance, truth }: World, log: ShardedLog): void {
  const topic = oneOf(chance, [...truth.topics.values(), undefined])
  if (topic === undefined) return
  const known = topic.created === 'made' && topic.deletions === 0
  topic.deletions++
  log.propose({ kind: 'DeleteTopic', topicId: topic.topicId }).then(
    (result) => {
      truth.answered++
      if (result.ok) topic.deleted = true
      else {
        topic.deletions--
        if (known && topic.deletions === 0)
          truth.violated(`${topic.name} was lost: ${result.message}`)
      }
    },
    (error: unknown) => {
      if (isNever(error)) topic.deletions--
    },
  )
}

function allocate({ truth }: World, log: ShardedLog): void {
  log.propose({ kind: 'AllocateProducerIds', count: 5 }).then(
    (result) => {
      truth.answered++
      if (result.ok) truth.gaveIds(result.answer.first, result.answer.count)
    },
    () => undefined,
  )
}

/** Everybody is back, and has to know everything. */
async function peace(world: World): Promise<void> {
  const { brokers, truth } = world
  world.heal()
  await world.run(CRASH_MS)
  for (const broker of brokers) world.start(broker)
  await world.run(1000)
  const logs = brokers.flatMap(({ log }) => (log === undefined ? [] : [log]))
  if (logs.length < brokers.length) truth.violated('not everybody has started')
  let changed = 0
  for (const log of logs) {
    for (let shard = 0; shard < SHARDS; shard++) {
      const forget = (): Promise<void> =>
        log.shards.propose(shard, NOTHING).then(
          () => void changed++,
          () => forget(),
        )
      void forget()
    }
  }
  const all = logs.length * SHARDS
  if (!(await world.runUntil(() => changed === all, PEACE_MS))) {
    truth.violated(`in peace ${all - changed} of ${all} proposals were not answered`)
  }
  const expected = truth.expected()
  let fresh = 0
  for (const log of logs) void log.allFresh().then(() => fresh++)
  if (!(await world.runUntil(() => fresh === logs.length, PEACE_MS))) {
    truth.violated(`in peace ${logs.length - fresh} brokers do not come to know everything`)
  }
  for (const [i, log] of logs.entries()) {
    truth.look(log, `broker ${i + 1}`)
    if (fresh === logs.length) truth.check(log, expected, `broker ${i + 1} at last`)
    for (let shard = 0; shard < SHARDS; shard++) {
      const { appliedIndex, appliedTerm } = log.shards.copyOf(shard)
      truth.checkLog(shard, appliedIndex, appliedTerm)
    }
  }
}

function oneOf<T>(chance: Prng, values: readonly T[]): T {
  return values[chance.below(values.length)] as T
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardError, type ErrorCode } from '../../../src/base/errors.ts'
import { openShardedLog, type ShardedLog } from '../../../src/broker/metadata/sharded-log.ts'
import type { CreateTopic } from '../../../src/core/metadata/commands.ts'
import { emptyState } from '../../../src/core/metadata/machine.ts'
import { encodeSnapshot } from '../../../src/core/metadata/snapshot.ts'
import { nodeId, type TopicId } from '../../../src/model/ids.ts'
import { newTopicId, TOPIC_ID_RANDOM_BYTES } from '../../../src/model/shards.ts'
import type { Disk } from '../../../src/ports/disk.ts'
import { simDisk } from '../../../src/sim/ports/disk.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import { type Journal, openJournal } from '../../../src/storage/journal/journal.ts'
import { createTopic, given, placement } from '../../core/metadata/support.ts'
import { keptLog, manualClock, seededRandom } from '../../storage/support/ports.ts'
import { untilCrash } from '../../storage/support/until-crash.ts'

const SHARDS = 4

interface Opened {
  readonly log: ShardedLog
  readonly journal: Journal
  readonly failures: Error[]
}

async function open(disk: Disk, boot: number = 1, snapshotBytes: number = 1e6): Promise<Opened> {
  const failures: Error[] = []
  const onFailed = (error: Error): void => void failures.push(error)
  const journal = await openJournal({
    disk,
    clock: manualClock(),
    random: seededRandom(boot),
    log: keptLog(),
    fileBytes: 64 * 1024,
    identity: { nodeIdBytes: new Uint8Array(16).fill(3), bootCount: boot },
    onFailed: () => {},
  })
  const clock = manualClock()
  const log = openShardedLog({
    ports: { clock, random: seededRandom(boot), log: keptLog(), metrics: simMetrics() },
    journal,
    nodeId: nodeId('03'.repeat(16)),
    founder: true,
    shards: SHARDS,
    electionTimeoutMs: 1000,
    heartbeatMs: 200,
    timeoutMs: 5000,
    snapshotBytesLeast: snapshotBytes,
    entriesKept: 8,
    send: () => {},
    others: () => [],
    onLead: () => {},
    onFailed,
  })
  await log.allFresh()
  return { log, journal, failures }
}

function create(number: number): CreateTopic {
  return createTopic({ name: `topic-${number}`, topicId: idOf(number) })
}

function idOf(number: number, fill: number = number): TopicId {
  return newTopicId(`topic-${number}`, new Uint8Array(TOPIC_ID_RANDOM_BYTES).fill(fill))
}

function isError(code: ErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof EastGuardError && error.code === code
}

test('a proposal is answered with its own result, in the order proposed', async () => {
  const { log } = await open(simDisk().mount())
  const [first, second, third] = await Promise.all([
    log.propose(create(1)),
    log.propose({ ...create(1), topicId: idOf(1, 9) }),
    log.propose({ kind: 'AllocateProducerIds', count: 5 }),
  ])
  assert.ok(first.ok && first.answer.topic.topicId === idOf(1))
  assert.ok(!second.ok && second.code === 'TOPIC_EXISTS')
  assert.ok(third.ok && third.answer.count === 5)
  await log.close()
})

test('listeners hear of a change before its proposer is answered', async () => {
  const { log } = await open(simDisk().mount())
  const heard: (readonly TopicId[])[] = []
  const stop = log.onChange((changed) => void heard.push(changed))
  await log.propose(create(1))
  assert.deepEqual(heard, [[idOf(1)]])
  await log.propose(create(1))
  assert.equal(heard.length, 1, 'a refusal changes nothing')
  stop()
  await log.propose({ kind: 'DeleteTopic', topicId: idOf(1) })
  assert.equal(heard.length, 1)
  await log.close()
})

test('proposals of one turn share a sync', async () => {
  const sim = simDisk()
  const { log } = await open(sim.mount())
  await log.propose(create(0))
  const before = sim.operations
  await Promise.all(Array.from({ length: 100 }, (_, i) => log.propose(create(i + 1))))
  assert.ok(sim.operations - before < 10, `${sim.operations - before} disk operations`)
  await log.close()
})

test('a closed log refuses, after it has answered what it took', async () => {
  const { log } = await open(simDisk().mount())
  const last = log.propose(create(1))
  const closing = log.close()
  await assert.rejects(log.propose(create(2)), isError('BROKER_STOPPED'))
  assert.ok((await last).ok)
  await closing
})

test('a disk that fails rejects what waits and all that follows, and is told of once', async () => {
  const { log, journal, failures } = await open(simDisk().mount())
  const cause = new Error('no more')
  Object.assign(journal, { sync: () => Promise.reject(cause) })
  await assert.rejects(log.propose(create(1)), isError('DISK_FAILED'))
  await assert.rejects(log.propose(create(2)), isError('DISK_FAILED'))
  assert.equal(failures.length, 1)
  assert.equal(failures[0]?.cause, cause)
  assert.equal(log.state.topics.size, 0)
})

test('a full disk refuses new topics, and goes on with what frees space', async () => {
  const { log, journal } = await open(simDisk().mount())
  await log.propose(create(1))
  Object.assign(journal, { hasRoom: () => false })
  await assert.rejects(log.propose(create(2)), isError('STORAGE_FULL'))
  assert.ok((await log.propose({ kind: 'DeleteTopic', topicId: idOf(1) })).ok)
  await log.close()
})

test('a command that its bytes cannot say never reaches the journal', async () => {
  const { log } = await open(simDisk().mount())
  await assert.rejects(log.propose({ ...create(1), timeMs: -1 }))
  await assert.rejects(log.propose({ ...create(1), creationToken: 'x'.repeat(70_000) }))
  assert.equal(log.state.topics.size, 0)
  await log.close()
})

function stateBytes(log: ShardedLog): Uint8Array {
  const { topics, topicsByName, nextProducerId } = log.state
  const seen = {
    topics: new Map(topics),
    topicsByName: new Map(topicsByName),
    nextProducerId,
    appliedIndex: 0,
  }
  return encodeSnapshot({ ...emptyState(), ...seen })
}

/** A topic whose range rolls and drops what it sealed, so that the state stays small while the log grows. */
async function churn(log: ShardedLog, steps: number): Promise<void> {
  if (log.state.topics.size === 0) await log.propose(create(1))
  for (let i = 0; i < steps; i++) {
    const [one] = log.state.topics.values()
    const range = one?.active[0]
    assert.ok(one !== undefined && range !== undefined)
    const { topicId } = one
    const end = given(range, 1)
    const roll = { topicId, placement: placement(), timeMs: i, tailFrom: 1 } as const
    assert.ok((await log.propose({ kind: 'RollSegment', ...roll, ...end })).ok)
    const belowSegment = end.segment + 1
    await log.propose({ kind: 'DropSegments', topicId, range: range.range, belowSegment })
  }
}

test('the state comes back after every kind of end, through snapshots too, and the journal stays short', async () => {
  const sim = simDisk({ seed: 3 })
  let expected: Uint8Array | undefined
  for (let boot = 1; boot <= 5; boot++) {
    const { log, journal } = await open(sim.mount(), boot, 20_000)
    if (expected !== undefined) assert.deepEqual(stateBytes(log), expected)
    await churn(log, 300)
    assert.ok(journal.filesInUse <= 3, `${journal.filesInUse} files`)
    expected = stateBytes(log).slice()
    if (boot % 2 === 0) await log.close()
    sim.crash({ keepUnsynced: boot === 3 })
  }
})

test('whatever operation it crashes at, what was answered is there after the restart', async () => {
  for (let operation = 1; ; operation += 3) {
    const sim = simDisk({ seed: operation })
    let answered = 0
    const ended = await untilCrash(sim, operation, { keepUnsynced: 'some' }, async () => {
      const { log } = await open(sim.mount(), 1, 3000)
      for (let i = 0; i < 40; i++) {
        await log.propose(create(i))
        answered = i + 1
      }
      await log.close()
      return true
    })
    const { log } = await open(sim.mount(), 2)
    const { size } = log.state.topics
    assert.ok(size === answered || size === answered + 1, `${size} topics, ${answered} answered`)
    if (ended === true) return
  }
})

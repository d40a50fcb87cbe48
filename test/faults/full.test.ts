// A disk that fills up under eight producers, is emptied, and fills up again.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXIT_DATA_DIR } from '../../src/app/exit-codes.ts'
import { EastGuardError } from '../../src/base/errors.ts'
import { within } from '../support/time.ts'
import { TOPIC } from '../torture/round.ts'
import { type Rig, startRig } from './rig.ts'

const PROBE = 'probe'

/** The broker looks at its disk once a second, and goes on for as long as it has files; then it refuses. */
async function fill(rig: Rig): Promise<void> {
  await rig.broker.fault({ kind: 'full', full: true })
  await within(10_000, 'a refusal', () => refused(rig))
  await rig.quiet(300, 10_000)
}

async function refused(rig: Rig): Promise<boolean> {
  await using producer = rig.newClient().producer({ deliveryTimeoutMs: 500 })
  const error = await producer.send({ topic: PROBE, value: 'x' }).then(
    () => undefined,
    (told: Error) => told,
  )
  if (error === undefined) return false
  assert.match(error.message, /ended with STORAGE_FULL/)
  return storageFull(error.cause)
}

async function empty(rig: Rig): Promise<void> {
  const began = performance.now()
  await rig.broker.fault({ kind: 'full', full: false })
  await rig.more(1, 5000)
  assert.ok(performance.now() - began < 5000)
  await rig.more(2000, 20_000)
}

async function logged(rig: Rig, line: RegExp): Promise<void> {
  await within(5000, `${line} in the log`, async () => line.test(rig.broker.log()))
}

async function shown(rig: Rig): Promise<unknown> {
  const { brokers } = await rig.client.admin().describeCluster()
  return { diskFull: brokers[0]?.diskFull, metric: await rig.metric('eastguard_disk_full') }
}

function storageFull(error: unknown): boolean {
  assert.ok(error instanceof EastGuardError)
  assert.equal(error.code, 'STORAGE_FULL', error.message)
  assert.equal(error.retriable, true)
  return true
}

test('a full disk: producers wait, readers read on, and writing goes on by itself when there is space', async (t) => {
  const rig = await startRig(t)
  const admin = rig.client.admin()
  await admin.createTopic('spare')
  await admin.createTopic(PROBE)
  rig.addWriters()
  await rig.more(2000, 20_000)

  await fill(rig)
  await logged(rig, /the disk is full: writes are refused/)
  await rig.verifyAll()
  assert.equal(await rig.status('/readyz'), 200)
  assert.deepEqual(await shown(rig), { diskFull: true, metric: 1 })
  await assert.rejects(admin.createTopic('new', { timeoutMs: 300 }), storageFull)
  await assert.rejects(admin.addPartitions(TOPIC, 9, { timeoutMs: 300 }), storageFull)
  assert.equal((await admin.createTopic('spare', { ifNotExists: true })).created, false)
  await admin.alterTopic(TOPIC, { retentionMs: 3_600_000 })
  await admin.deleteTopic('spare')
  assert.deepEqual(await admin.listTopics(), [PROBE, TOPIC])
  await empty(rig)
  await logged(rig, /the disk has space again: writes are taken/)
  assert.deepEqual(await shown(rig), { diskFull: false, metric: 0 })
  await admin.createTopic('new')

  await fill(rig)
  await rig.verifyAll()
  await empty(rig)

  // A start has to write a little. Without any space it says so, and harms nothing.
  await fill(rig)
  rig.broker.child.kill('SIGKILL')
  await rig.start([{ kind: 'full', full: true }])
  assert.equal(await rig.broker.exited, EXIT_DATA_DIR)
  assert.match(rig.broker.log(), /the disk is full/)
  assert.match(rig.broker.log(), /"hint":"free space on the disk, then start the broker again"/)
  await rig.again()
  await rig.more(1, 20_000)
  await rig.verifyAll()
})

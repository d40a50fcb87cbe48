// A disk that fails: a write or a sync that did stops the broker, which says what it was; a read that did concerns its
// reader alone.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXIT_DISK } from '../../src/app/exit-codes.ts'
import { EastGuardError } from '../../src/base/errors.ts'
import { within } from '../support/time.ts'
import { TOPIC } from '../torture/round.ts'
import { type Rig, startRig } from './rig.ts'

/** The broker's last words, as its log has them. */
interface LastWords {
  readonly msg: string
  readonly code: string
  readonly hint: string
}

/** From now on: a single failure could meet an index file, which is written again and stops nobody. */
const ALWAYS = 1_000_000_000

/** What a coordinator says of a restart that takes longer than fence_wait_ms, which on a busy machine it may. */
const UNAVAILABLE = '"msg":"unavailable: no replica of the open segment is there'

async function hasStopped(rig: Rig, path: RegExp): Promise<void> {
  const { broker } = rig
  await within(30_000, 'an end of the broker', () => broker.child.exitCode !== null)
  assert.equal(await broker.exited, EXIT_DISK, broker.log())
  const errors = broker
    .log()
    .split('\n')
    .filter((line) => line.includes('"level":"error"') && !line.includes(UNAVAILABLE))
  assert.equal(errors.length, 1, broker.log())
  const words = JSON.parse(errors[0] as string) as LastWords
  assert.equal(words.code, 'DISK_FAILED')
  assert.match(words.msg, /^the disk failed and the broker stops: .*cannot /)
  assert.match(words.msg, path)
  assert.match(words.hint, /start the broker/)
}

test('a write or sync that fails under load stops the broker with its message; nothing acknowledged is lost', async (t) => {
  const rig = await startRig(t)
  rig.addWriters()
  for (const [operation, prefix] of [
    ['sync', 'wal/'],
    ['sync', 'topics/'],
    ['write', 'topics/'],
    ['syncDir', 'topics/'],
  ] as const) {
    await rig.more(1000, 20_000)
    await rig.broker.fault({ kind: 'fail', operation, prefix, times: ALWAYS })
    await hasStopped(rig, new RegExp(prefix))
    await rig.again()
  }
  await rig.more(1000, 20_000)
  // Creating goes on when the broker is back.
  await rig.broker.fault({ kind: 'fail', operation: 'sync', prefix: 'journal/' })
  const created = rig.client.admin().createTopic('during')
  await hasStopped(rig, /journal\//)
  await rig.again()
  assert.equal((await created).name, 'during')
  await rig.more(1000, 20_000)
  await rig.verifyAll()
})

test('a read that fails is told to its reader; the broker and the other readers go on', async (t) => {
  const rig = await startRig(t, ['--cache-bytes=4MiB', '--unflushed-bytes-max=2MiB'])
  rig.addWriters()
  // More than the cache holds, so that the oldest is read from files.
  await rig.more(20_000, 30_000)
  await rig.broker.fault({
    kind: 'fail',
    operation: 'read',
    prefix: 'topics/',
    times: ALWAYS,
  })
  const old = rig.newClient().consumer({ topic: TOPIC, from: 'earliest', stopAtEnd: true })
  await assert.rejects(
    (async () => {
      for await (const { records } of old.batches()) assert.ok(records.length > 0)
    })(),
    (error: unknown) => {
      assert.ok(error instanceof EastGuardError)
      assert.equal(error.code, 'DAMAGED')
      return true
    },
  )
  let seen = 0
  const tail = rig.newClient().consumer({ topic: TOPIC, from: 'latest' })
  for await (const { records } of tail.batches()) {
    seen += records.length
    if (seen > 1000) break
  }
  await rig.more(1000, 10_000)
  assert.equal(rig.broker.child.exitCode, null)
  assert.equal(await rig.status('/readyz'), 200)
  assert.match(rig.broker.log(), /"msg":"a segment file could not be read[^"]*topics\//)
  // It was not taken for damage: when the disk reads again, all is there.
  await rig.broker.fault({ kind: 'well' })
  await rig.verifyAll()
})

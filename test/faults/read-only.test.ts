// A file system that is mounted read-only, from the start or while the broker runs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXIT_DATA_DIR, EXIT_DISK } from '../../src/app/exit-codes.ts'
import { startRig } from './rig.ts'

test('a disk that becomes read-only stops the broker, which says so, does not start on it, and loses nothing', async (t) => {
  const rig = await startRig(t)
  rig.addWriters()
  await rig.more(1000, 20_000)
  await rig.broker.fault({ kind: 'read-only', readOnly: true })
  assert.equal(await rig.broker.exited, EXIT_DISK)
  assert.match(rig.broker.log(), /"msg":"the disk failed and the broker stops: .*read-only/)
  assert.match(rig.broker.log(), /"hint":"make the file system writable again/)

  await rig.start([{ kind: 'read-only', readOnly: true }])
  assert.equal(await rig.broker.exited, EXIT_DATA_DIR)
  assert.match(rig.broker.log(), /"msg":"the broker cannot run: .*read-only/)
  assert.match(rig.broker.log(), /"hint":"make the file system writable again/)
  assert.ok(rig.broker.log().includes(rig.ground.dataDir))

  await rig.again()
  await rig.more(1000, 20_000)
  await rig.verifyAll()
})

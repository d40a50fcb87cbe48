import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DiskError } from '../../src/ports/disk.ts'
import { simDisk } from '../../src/sim/ports/disk.ts'
import { readChecked, writeChecked } from '../../src/storage/checked-file.ts'

test('a file that cannot be written takes no space, and the old one stays', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const old = Uint8Array.of(1, 2, 3)
  await writeChecked(disk, 'file', old)
  sim.fail({ operation: 'write', fault: 'full' })
  sim.fail({ operation: 'sync', fault: 'io' })
  for (let i = 0; i < 2; i++) {
    await assert.rejects(writeChecked(disk, 'file', new Uint8Array(100)), DiskError)
    assert.deepEqual(sim.paths(), ['file'])
    assert.deepEqual(await readChecked(disk, 'file'), old)
  }
})

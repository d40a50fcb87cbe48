import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DiskError } from '../../src/ports/disk.ts'
import { simDisk } from '../../src/sim/ports/disk.ts'
import { readChecked, writeChecked } from '../../src/storage/checked-file.ts'

test('a file that the disk has no space for takes none, and the old one stays', async () => {
  const sim = simDisk()
  const disk = sim.mount()
  const old = Uint8Array.of(1, 2, 3)
  await writeChecked(disk, 'file', old)
  for (const operation of ['write', 'sync'] as const) {
    sim.fail({ operation, fault: 'full' })
    await assert.rejects(writeChecked(disk, 'file', new Uint8Array(100)), DiskError)
    assert.deepEqual(sim.paths(), ['file'])
    assert.deepEqual(await readChecked(disk, 'file'), old)
  }
})

import assert from 'node:assert/strict'
import fs from 'node:fs'
import promises from 'node:fs/promises'
import { test } from 'node:test'
import { diskError } from '../../src/io/disk/faults.ts'
import { fileDisk } from '../../src/io/disk/file-disk.ts'
import { inTempDir } from '../ports/support.ts'

test('a write that finds no room may be tried again; a sync that finds none has failed', async (t) => {
  await inTempDir(async (dir) => {
    const disk = fileDisk(dir)
    const file = await disk.open('a', { mode: 'create-new' })
    for (const code of ['ENOSPC', 'EDQUOT', 'EIO']) {
      const cause = Object.assign(new Error('what the system says'), { code })
      const failed = { name: 'DiskError', fault: 'io', cause, message: new RegExp(code) }
      assert.equal(diskError('write', 'a', cause).fault, code === 'EIO' ? 'io' : 'full')
      t.mock.method(fs, 'fdatasync', (_fd: number, told: (error: Error) => void) => told(cause))
      await assert.rejects(file.sync(), failed)
      const sync = (): Promise<never> => Promise.reject(cause)
      t.mock.method(promises, 'open', async () => ({ sync, close: async () => {} }))
      await assert.rejects(disk.syncDir('.'), failed)
      t.mock.restoreAll()
    }
    await file.sync()
    await disk.syncDir('.')
    await file.close()
  })
})

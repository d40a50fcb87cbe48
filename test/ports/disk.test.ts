import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileDisk } from '../../src/io/disk/file-disk.ts'
import { DiskError } from '../../src/ports/disk.ts'
import { simDisk } from '../../src/sim/ports/disk.ts'
import { diskSuite, refused } from './disk.suite.ts'
import { inTempDir } from './support.ts'

diskSuite('file', (body) => inTempDir((dir) => body(fileDisk(dir))))
diskSuite('simulated', (body) => body(simDisk().mount()))

const FILE_DISK = new URL('../../src/io/disk/file-disk.js', import.meta.url).href

/** A process that takes the lock, says so, and waits to be killed. */
const HOLDER = `
const { fileDisk } = await import(${JSON.stringify(FILE_DISK)})
await fileDisk(process.argv[1]).lock('lock').then(
  () => { console.log('held'); setInterval(() => {}, 1000) },
  (error) => console.log(error.fault),
)`

async function holder(dir: string): Promise<{ said: string; kill(): Promise<void> }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, dir])
  const [first] = (await once(child.stdout, 'data')) as [Buffer]
  return {
    said: first.toString().trim(),
    kill: async () => {
      if (child.exitCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
  }
}

test('the lock excludes another process, says which, and is free when that is killed', () =>
  inTempDir(async (dir) => {
    const other = await holder(dir)
    assert.equal(other.said, 'held')
    await assert.rejects(fileDisk(dir).lock('lock'), /held by process \d+/)
    await other.kill()
    const lock = await fileDisk(dir).lock('lock')
    assert.equal((await holder(dir)).said, 'locked')
    await lock.release()
  }))

test('the lock leaves no more than one name behind, however often it was taken', () =>
  inTempDir(async (dir) => {
    for (let i = 0; i < 5; i++) await (await fileDisk(dir).lock('lock')).release()
    assert.deepEqual(await readdir(join(dir, 'lock')), ['5'])
    assert.deepEqual(await readdir(dir), ['lock'])
  }))

test('the lock works in a directory whose path is longer than a socket address', () =>
  inTempDir(async (dir) => {
    const disk = fileDisk(join(dir, 'long'.repeat(40)))
    const lock = await disk.lock('lock')
    await refused('locked', disk.lock('lock'))
    await lock.release()
  }))

test('a lock directory that lost its names begins anew', () =>
  inTempDir(async (dir) => {
    await mkdir(join(dir, 'lock'))
    await (await fileDisk(dir).lock('lock')).release()
  }))

test(
  'a directory without permission is refused as denied',
  { skip: process.getuid?.() === 0 },
  () =>
    inTempDir(async (dir) => {
      await chmod(dir, 0o555)
      await refused('denied', fileDisk(dir).open('a', { mode: 'create' }))
      await refused('denied', fileDisk(dir).lock('lock'))
      await chmod(dir, 0o755)
    }),
)

test('however contenders come and go, the lock never has two owners', () =>
  inTempDir(async (dir) => {
    let owners = 0
    let taken = 0
    const contend = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        const lock = await fileDisk(dir)
          .lock('lock')
          .catch((error: unknown) => {
            assert.ok(error instanceof DiskError && error.fault === 'locked')
          })
        if (lock === undefined) continue
        assert.equal(++owners, 1)
        taken++
        // The others try meanwhile.
        await stat(dir)
        owners--
        await lock.release()
      }
    }
    await Promise.all(Array.from({ length: 6 }, contend))
    assert.ok(taken > 0)
  }))

test('a directory that can have no children fails instead of being tried for ever', {
  skip: process.platform !== 'linux' && 'there is no /proc',
  timeout: 10_000,
}, async () => {
  await refused('not-found', fileDisk('/proc/eastguard').lock('lock'))
})

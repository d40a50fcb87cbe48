import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Disk, DiskError, type DiskFault, type DiskFile } from '../../src/ports/disk.ts'

export type WithDisk = (body: (disk: Disk) => Promise<void>) => Promise<void>

export function diskSuite(name: string, withDisk: WithDisk): void {
  const check = (what: string, body: (disk: Disk) => Promise<void>): void => {
    test(`${name} disk: ${what}`, () => withDisk(body))
  }

  check('what was written is read, and reads are short only at the end', async (disk) => {
    const file = await disk.open('a', { mode: 'create' })
    await file.write([bytes(1, 2, 3), bytes(), bytes(4, 5)], 3)
    assert.equal(await file.size(), 8)
    const into = new Uint8Array(20)
    assert.equal(await file.read(into, 0), 8)
    assert.deepEqual(into.subarray(0, 8), bytes(0, 0, 0, 1, 2, 3, 4, 5))
    assert.equal(await file.read(new Uint8Array(2), 4), 2)
    assert.equal(await file.read(new Uint8Array(2), 8), 0)
    assert.equal(await file.read(new Uint8Array(2), 100), 0)
    await file.sync()
    await file.close()
    await file.close()
  })

  for (const durable of [false, true]) {
    check(`vectored writes of any sizes land whole (durable: ${durable})`, async (disk) => {
      await disk.makeDir('v')
      let round = 0
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.oneof(fc.nat(40), fc.nat(9000)), { maxLength: 60 }),
          fc.nat(5000),
          async (lengths, position) => {
            const file = await disk.open(`v/${round++}`, { mode: 'create-new', durable })
            const buffers = lengths.map((length, i) => new Uint8Array(length).fill(i + 1))
            await file.write(buffers, position)
            const whole = Buffer.concat(buffers)
            assert.deepEqual(await readAll(file, position), new Uint8Array(whole))
            await file.close()
          },
        ),
        { numRuns: 15 },
      )
    })
  }

  check('thousands of buffers in one write land in order', async (disk) => {
    const file = await disk.open('many', { mode: 'create', durable: true })
    const buffers = Array.from({ length: 5000 }, (_, i) => new Uint8Array(1 + (i % 7)).fill(i))
    await file.write(buffers, 0)
    assert.deepEqual(await readAll(file, 0), new Uint8Array(Buffer.concat(buffers)))
    await file.close()
  })

  check('the modes of opening', async (disk) => {
    await refused('not-found', disk.open('m', { mode: 'read' }))
    await refused('not-found', disk.open('m', { mode: 'write' }))
    await refused('not-found', disk.open('no/m', { mode: 'create' }))
    await (await disk.open('m', { mode: 'create-new' })).close()
    await refused('exists', disk.open('m', { mode: 'create-new' }))
    const writer = await disk.open('m', { mode: 'write' })
    await writer.write([bytes(1)], 0)
    await writer.close()
    const again = await disk.open('m', { mode: 'create' })
    assert.equal(await again.size(), 1)
    await again.close()
    const reader = await disk.open('m', { mode: 'read' })
    await refused('io', reader.write([bytes(2)], 0))
    await reader.close()
  })

  check('truncating cuts, and growing again shows zeros', async (disk) => {
    const file = await disk.open('t', { mode: 'create' })
    await file.write([bytes(1, 2, 3, 4)], 0)
    await file.truncate(2)
    assert.equal(await file.size(), 2)
    await file.truncate(4)
    assert.deepEqual(await readAll(file, 0), bytes(1, 2, 0, 0))
    await file.close()
  })

  check('allocating writes zeros behind what is there and changes nothing of it', async (disk) => {
    const file = await disk.open('al', { mode: 'create', durable: true })
    await file.write([bytes(1, 2)], 0)
    await file.allocate(3_000_001)
    assert.equal(await file.size(), 3_000_001)
    const content = await readAll(file, 0)
    assert.deepEqual(content.subarray(0, 2), bytes(1, 2))
    assert.ok(content.subarray(2).every((byte) => byte === 0))
    await file.allocate(10)
    assert.equal(await file.size(), 3_000_001)
    await file.close()
  })

  check('directories: made with parents, listed, renamed, removed whole', async (disk) => {
    await disk.makeDir('d/e/f')
    await disk.makeDir('d/e/f')
    await (await disk.open('d/e/x', { mode: 'create' })).close()
    assert.deepEqual(sorted(await disk.list('d/e')), [
      { name: 'f', kind: 'directory' },
      { name: 'x', kind: 'file' },
    ])
    await disk.syncDir('d/e')
    await disk.syncDir('.')
    await disk.rename('d/e', 'g')
    assert.deepEqual(await disk.list('d'), [])
    assert.deepEqual(sorted(await disk.list('.')), [
      { name: 'd', kind: 'directory' },
      { name: 'g', kind: 'directory' },
    ])
    await disk.remove('g')
    await disk.remove('g')
    await refused('not-found', disk.list('g'))
    await refused('not-found', disk.syncDir('g'))
  })

  check('renaming onto a file replaces it; from nothing it is refused', async (disk) => {
    const old = await disk.open('old', { mode: 'create' })
    await old.write([bytes(1)], 0)
    await old.close()
    await (await disk.open('new', { mode: 'create' })).close()
    await disk.rename('new', 'old')
    const file = await disk.open('old', { mode: 'read' })
    assert.equal(await file.size(), 0)
    await file.close()
    await refused('not-found', disk.rename('new', 'old'))
  })

  check('an open file lives on when its name is gone', async (disk) => {
    const file = await disk.open('gone', { mode: 'create' })
    await file.write([bytes(7)], 0)
    await disk.remove('gone')
    assert.deepEqual(await readAll(file, 0), bytes(7))
    await file.close()
  })

  check('the lock is refused while it is held, and free after its release', async (disk) => {
    for (let i = 0; i < 3; i++) {
      const lock = await disk.lock('lock')
      await refused('locked', disk.lock('lock'))
      await lock.release()
    }
  })

  check('of many that want the lock at once, one has it', async (disk) => {
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => disk.lock('lock')))
    const won = results.filter((r) => r.status === 'fulfilled')
    assert.equal(won.length, 1)
    for (const result of results) {
      if (result.status === 'rejected') assert.equal((result.reason as DiskError).fault, 'locked')
    }
    for (const result of won) await result.value.release()
  })

  check('space is told', async (disk) => {
    const { totalBytes, freeBytes } = await disk.space()
    assert.ok(totalBytes >= freeBytes && freeBytes > 0)
  })

  check('no path leads out of the disk', async (disk) => {
    for (const path of ['/etc/hosts', '../x', 'a/../../x', 'a//b', '', 'a/./b', 'a\0b']) {
      await assert.rejects(async () => disk.open(path, { mode: 'create' }), /not a path inside/)
    }
  })
}

export async function readAll(file: DiskFile, position: number): Promise<Uint8Array> {
  const into = new Uint8Array(Math.max(0, (await file.size()) - position))
  assert.equal(await file.read(into, position), into.length)
  return into
}

export async function refused(fault: DiskFault, work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => error instanceof DiskError && error.fault === fault)
}

export function bytes(...values: number[]): Uint8Array {
  return Uint8Array.from(values)
}

export function filled(length: number, value: number): Uint8Array {
  return new Uint8Array(length).fill(value)
}

function sorted<T extends { readonly name: string }>(entries: readonly T[]): T[] {
  return [...entries].sort((a, b) => (a.name < b.name ? -1 : 1))
}

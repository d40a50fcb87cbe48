// `eastguard repair` as an operator runs it: processes, exit codes, a real directory.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { spawnBroker } from '../support/broker-process.ts'

const RECORDS = 3000

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

function run(program: string, words: readonly string[], input: string = ''): Promise<Ended> {
  const path = fileURLToPath(new URL(`../../src/cli/${program}.js`, import.meta.url))
  const child = spawn(process.execPath, [path, ...words])
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    out += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    err += chunk
  })
  child.stdin.end(input)
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ code, out, err }))
  })
}

let root = ''
let dataDir = ''

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'eastguard-repair-'))
  dataDir = join(root, 'data')
})

after(async () => {
  await rm(root, { recursive: true, force: true })
})

async function segmentFile(): Promise<string> {
  const files = await readdir(join(dataDir, 'topics'), { recursive: true })
  const log = files.find((path) => path.endsWith('.log'))
  assert.ok(log !== undefined)
  return join(dataDir, 'topics', log)
}

/** The text of one record in the middle of the file is changed. */
async function damage(path: string): Promise<void> {
  const at = (await readFile(path)).indexOf(`"record ${RECORDS / 2}"`)
  assert.ok(at > 0)
  const file = await open(path, 'r+')
  await file.write(Buffer.from('R'), 0, 1, at + 1)
  await file.close()
}

/** Runs `work` while a broker serves the directory, and ends the broker in good order. */
async function serving<T>(work: (seeds: readonly string[]) => Promise<T>): Promise<T> {
  const broker = await spawnBroker({ dataDir })
  try {
    await broker.ready()
    return await work(['--seeds', `127.0.0.1:${broker.port}`])
  } finally {
    broker.child.kill('SIGTERM')
    await broker.exited
  }
}

test('a damaged segment: repair says what is lost, changes nothing, and on acceptance the rest is served', async () => {
  await serving(async (seeds) => {
    await run('eg-cli', [...seeds, 'create-topic', 't', '--partitions', '1'])
    for (let batch = 0; batch < 3; batch++) {
      const third = RECORDS / 3
      const numbers = Array.from({ length: third }, (_, i) => batch * third + i)
      const text = numbers.map((i) => `"record ${i}"\n`).join('')
      const { code, err } = await run('eg-cli', [...seeds, 'produce', 't'], text)
      assert.equal(code, 0, err)
    }
    const busy = await run('eastguard', ['repair', dataDir])
    assert.equal(busy.code, 1)
    assert.match(busy.err, /DATA_DIR_IN_USE.*process \d+/)
  })
  // The write-ahead log of the first start still had everything: a second one begins anew.
  await serving(async () => {})
  const whole = await run('eastguard', ['repair', dataDir])
  assert.deepEqual([whole.code, whole.out], [0, `${dataDir}: nothing is lost\n`], whole.err)

  const path = await segmentFile()
  await damage(path)
  const bytes = await readFile(path)
  const looked = await run('eastguard', ['repair', dataDir])
  assert.equal(looked.code, 1)
  assert.match(looked.out, /│ t +│ +0 │ +1 │ +\d+ │ \d+-\d+ +│ 0: \d+-\d+ +│ +\d+ │/)
  assert.match(looked.out, /\.log, byte \d+: the entry does not match its checksums/)
  assert.match(looked.err, /1 loss to accept, and nothing was changed\n.*--accept-loss/)
  assert.deepEqual(await readFile(path), bytes)

  const accepted = await run('eastguard', ['repair', dataDir, '--accept-loss', '--json'])
  assert.deepEqual([accepted.code, accepted.err], [0, ''])
  const { losses, repaired } = JSON.parse(accepted.out) as {
    losses: { topic: string; offsets: { first_offset: number; last_offset: number }[] }[]
    repaired: boolean
  }
  assert.equal(repaired, true)
  assert.equal(losses.length, 1)
  const { first_offset: first, last_offset: last } = losses[0]?.offsets[0] ?? {
    first_offset: -1,
    last_offset: -1,
  }
  assert.ok(first <= RECORDS / 2 && last >= RECORDS / 2)
  const again = await run('eastguard', ['repair', dataDir])
  assert.deepEqual([again.code, again.out], [0, `${dataDir}: nothing is lost\n`])

  await serving(async (seeds) => {
    const consume = (offset: number): Promise<Ended> =>
      run('eg-cli', [
        ...seeds,
        'consume',
        't',
        '--partition',
        '0',
        '--offset',
        String(offset),
        '--raw',
      ])
    const before = await consume(0)
    assert.match(
      before.err,
      new RegExp(`RECORDS_LOST.*the next offset that can be read is ${last + 1}`),
    )
    assert.equal(before.out.split('\n').length - 1, first)
    const behind = await consume(last + 1)
    assert.equal(behind.code, 0, behind.err)
    const expected = Array.from(
      { length: RECORDS - last - 1 },
      (_, i) => `"record ${last + 1 + i}"\n`,
    )
    assert.equal(behind.out, expected.join(''))
    const published = await run('eg-cli', [...seeds, '--json', 'publish', 't', '', 'more'])
    assert.equal((JSON.parse(published.out) as { offset: number }).offset, RECORDS)
  })
})

test('what is no data directory is not made one', async () => {
  const nothing = join(root, 'nothing')
  const { code, err } = await run('eastguard', ['repair', nothing])
  assert.equal(code, 1)
  assert.match(err, /DATA_DIR_UNUSABLE: there is no node\.json/)
  await assert.rejects(readdir(nothing), { code: 'ENOENT' })
})

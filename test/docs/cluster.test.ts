// What the README says of clusters, and run_cluster.sh, as a newcomer meets them: the lines run as they stand there, on other
// ports and in another folder.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

/** Broker N has these plus 10 for each before it. */
const PORTS = [2921, 2922, 2923, 2924] as const
const BROKERS = 4
const BASE_LEAST = 10_000
const BASE_STEP = 100

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

let dir = ''
let shift = 0

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'eastguard-readme-cluster-'))
  shift = await freeShift()
})

after(async () => {
  await script('clean')
  await rm(dir, { recursive: true, force: true })
})

/** How far from the usual ports there are free ones for all. Below those that the system gives to anybody who asks for any. */
async function freeShift(): Promise<number> {
  const first = process.pid % 150
  for (let i = 0; i < 150; i++) {
    const by = BASE_LEAST + ((first + i) % 150) * BASE_STEP
    const wanted = Array.from({ length: BROKERS }, (_, n) =>
      PORTS.map((port) => port + by + 10 * n),
    )
    const free = await Promise.all(wanted.flat().map(isFree))
    if (free.every(Boolean)) return by
  }
  throw new Error('there are no free ports')
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

function shell(text: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const [client, cluster, data, http] = PORTS.map((port) => String(port + shift))
  return new Promise((resolve) => {
    const options = {
      env: {
        ...process.env,
        EASTGUARD_TEST_CLUSTER: join(dir, 'cluster'),
        EASTGUARD_CLIENT_PORT: client,
        EASTGUARD_CLUSTER_PORT: cluster,
        EASTGUARD_DATA_PORT: data,
        EASTGUARD_HTTP_PORT: http,
        // Few, so that nothing takes long.
        EASTGUARD_METADATA_SHARDS: '16',
        ...env,
      },
    }
    const child = execFile('bash', ['-c', `set -eu; ${text}`], options, (_, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    )
  })
}

function script(words: string, env?: Readonly<Record<string, string>>): Promise<Ended> {
  return shell(`bash run_cluster.sh ${words}`, env)
}

/** The lines of the README, on the ports of this test. */
async function walk(): Promise<string> {
  const readme = await readFile('README.md', 'utf8')
  const found = /## Lose a broker, add one\n[\s\S]*?```bash\n([\s\S]*?)```/.exec(readme)?.[1]
  assert.ok(found !== undefined, 'the README has no such lines')
  return found.replace(/127\.0\.0\.1:(\d+)/g, (_, port) => `127.0.0.1:${Number(port) + shift}`)
}

test('a port that is in use is named, and a broker that ends shows the end of its log', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(PORTS[1] + shift + 10, '127.0.0.1', resolve))
  const taken = await script('')
  await new Promise((resolve) => other.close(resolve))
  assert.equal(taken.code, 1, taken.out)
  assert.match(taken.err, new RegExp(`broker 2 cannot start: port ${PORTS[1] + shift + 10} `))
  const ended = await script('', { EASTGUARD_METADATA_SHARDS: '3' })
  assert.equal(ended.code, 1, ended.out)
  assert.match(ended.err, /broker 1 ended while starting; the end of its log[\s\S]*a power of two/)
})

test('three brokers come up, one is killed and comes back, a fourth comes and goes, as the README says', async () => {
  const up = await script('')
  assert.equal(up.code, 0, up.out + up.err)
  assert.match(up.out, /wipes the data[\s\S]*\nsettled\nproof: published one record/)
  const walked = await shell(await walk())
  assert.equal(walked.code, 0, walked.out + walked.err)
  assert.match(
    walked.out,
    /created orders[\s\S]*one book[\s\S]*two books[\s\S]*created payments[\s\S]*\nhello\norders\npayments\n/,
  )
  assert.match(
    walked.out,
    /broker-4 │ \S+ │ alive, draining │ +0 │ +0 │[\s\S]*\(broker-4\) is removed/,
  )
})

test('a cluster keeps its data over stop and start, and its ports whatever the environment says', async () => {
  const stopped = await script('stop')
  assert.deepEqual(
    stopped.out.match(/stopped broker \d/g),
    [1, 2, 3].map((n) => `stopped broker ${n}`),
  )
  assert.equal((await script('status')).code, 1)
  const started = await script('start', { EASTGUARD_CLIENT_PORT: '1' })
  assert.equal(started.code, 0, started.out + started.err)
  const seeds = /EASTGUARD_SEEDS=(\S+)/.exec(started.out)?.[1] ?? ''
  const listed = await shell(`./eg-cli --seeds ${seeds} list-topics`)
  assert.equal(listed.out, 'hello\norders\npayments\n', listed.err)
})

test('what the script does not understand changes nothing', async () => {
  for (const words of ['begin', 'kill', 'kill x', 'kill 9', 'start 9', 'add 2', 'stop 1 2']) {
    const { code, err } = await script(words)
    assert.equal(code, 1, words)
    assert.match(err, /usage|there is no broker/, words)
  }
  assert.equal((await script('status')).code, 0)
})

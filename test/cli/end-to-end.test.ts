// The programs as people run them: processes, pipes, exit codes, a real broker.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type BrokerProcess, spawnBroker } from '../support/broker-process.ts'

const PROGRAMS = new URL('../../src/cli/', import.meta.url)
const LINES = 100_000

interface Ended {
  readonly code: number | null
  readonly out: Buffer
  readonly err: string
}

function run(
  program: 'eg-cli' | 'eastguard',
  words: readonly string[],
  options: { input?: string | Buffer; env?: Record<string, string>; cwd?: string } = {},
): Promise<Ended> {
  const path = fileURLToPath(new URL(`${program}.js`, PROGRAMS))
  const child = spawn(process.execPath, [path, ...words], {
    env: { ...process.env, ...options.env },
    cwd: options.cwd,
  })
  const out: Buffer[] = []
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    err += chunk
  })
  child.stdin.end(options.input ?? '')
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ code, out: Buffer.concat(out), err }))
  })
}

let dir = ''
let broker: BrokerProcess
const eg = (words: readonly string[], input?: string | Buffer): Promise<Ended> =>
  run('eg-cli', words, {
    env: { EASTGUARD_SEEDS: `127.0.0.1:${broker.port}` },
    ...(input === undefined ? {} : { input }),
  })

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'eastguard-cli-'))
  broker = await spawnBroker({ dataDir: join(dir, 'data') })
  await broker.ready()
})

after(async () => {
  broker.child.kill('SIGKILL')
  await broker.exited
  await rm(dir, { recursive: true, force: true })
})

test('lines of any bytes go in and come out byte for byte, in order', async () => {
  const lines = Array.from({ length: LINES }, (_, i) =>
    i % 1000 === 0 ? Buffer.from([0xff, 0x00, (i & 0x7f) | 0x80, 10]) : Buffer.from(`line ${i}\n`),
  )
  const input = Buffer.concat(lines)
  assert.equal((await eg(['create-topic', 'lines', '--partitions', '1'])).code, 0)
  const produced = await eg(['produce', 'lines', '--json'], input)
  assert.equal(produced.code, 0, produced.err)
  assert.equal((JSON.parse(produced.out.toString()) as { records: number }).records, LINES)
  const consumed = await eg(['consume', 'lines', '--raw'])
  assert.equal(consumed.code, 0, consumed.err)
  assert.ok(consumed.out.equals(input))
})

test('an offset past the end is a failure that says where the records are', async () => {
  await eg(['create-topic', 'short', '--partitions', '1'])
  await eg(['produce', 'short'], 'a\nb\n')
  const consume = (offset: string): Promise<Ended> =>
    eg(['consume', 'short', '--partition', '0', '--offset', offset, '--raw'])
  const beyond = await consume('3')
  assert.deepEqual([beyond.code, beyond.out.length], [1, 0])
  assert.match(beyond.err, /^OFFSET_OUT_OF_RANGE: .* no offset 3: earliest is 0, latest is 2\n/)
  const atEnd = await consume('2')
  assert.deepEqual([atEnd.code, atEnd.out.length, atEnd.err], [0, 0, ''])
})

test('commands on standard input are a script', async () => {
  const script = `create-topic s --partitions 2\npublish s user123 "Hello EastGuard!"\nconsume s earliest 1 --raw\n`
  const { code, out, err } = await eg([], script)
  assert.equal(code, 0, err)
  assert.match(out.toString(), /Hello EastGuard!\n$/)
})

test('a first seed that takes the connection and says nothing costs about a second, to the end of the process', async (t) => {
  const silent = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    t.after(() => socket.destroy())
  })
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  t.after(() => silent.close())
  const { port } = silent.address() as AddressInfo
  const began = performance.now()
  const seeds = `127.0.0.1:${port},127.0.0.1:${broker.port}`
  const { code, err } = await run('eg-cli', ['--seeds', seeds, 'list-topics'])
  assert.deepEqual([code, err], [0, ''])
  assert.ok(performance.now() - began < 5000)
})

test('three replicas on one broker are refused, and the message says how many are alive', async () => {
  const { code, err } = await eg(['create-topic', 'three', '3'])
  assert.equal(code, 1)
  assert.match(err, /NOT_ENOUGH_BROKERS: .*1 broker is alive/)
})

test('an existing topic is refused unless its policy is equal and that was allowed', async () => {
  assert.equal((await eg(['create-topic', 'twice', '--partitions', '2'])).code, 0)
  const again = await eg(['create-topic', 'twice', '--partitions', '2'])
  assert.equal(again.code, 1)
  assert.match(again.err, /TOPIC_EXISTS: the topic 'twice' exists\n.*--if-not-exists/)
  const equal = await eg(['create-topic', 'twice', '--partitions', '2', '--if-not-exists'])
  assert.equal(equal.code, 0)
  assert.match(equal.out.toString(), /^twice exists already with an equal policy/)
  const other = await eg(['create-topic', 'twice', '--partitions', '3', '--if-not-exists'])
  assert.equal(other.code, 1)
  assert.match(other.err, /with another policy: partitions is 2, not 3\n/)
  assert.doesNotMatch(other.err, /--if-not-exists/)
})

test('what describe-topic and describe-cluster say as JSON', async () => {
  await eg(['create-topic', 'd', '--partitions', '3', '--config', 'retention_ms=1h'])
  await eg(['publish', 'd', 'k', 'v'])
  const topic = JSON.parse((await eg(['describe-topic', 'd', '--json'])).out.toString()) as {
    policy: Record<string, unknown>
    offsets: { end: number }[]
  }
  assert.equal(topic.policy['retention_ms'], 3_600_000)
  assert.deepEqual(
    topic.offsets.map(({ end }) => end).toSorted((a, b) => a - b),
    [0, 0, 1],
  )
  const cluster = JSON.parse((await eg(['describe-cluster', '--json'])).out.toString()) as {
    brokers: { state: string; client_port: number }[]
  }
  assert.deepEqual(
    cluster.brokers.map((b) => [b.state, b.client_port]),
    [['alive', broker.port]],
  )
})

test('a deleted topic is gone', async () => {
  await eg(['create-topic', 'gone'])
  assert.equal((await eg(['delete-topic', 'gone', '--yes'])).code, 0)
  const { code, err } = await eg(['consume', 'gone'])
  assert.equal(code, 1)
  assert.match(err, /UNKNOWN_TOPIC/)
})

test('nobody at the address: the command fails, and says which address', async () => {
  const { code, err } = await run('eg-cli', ['--seeds', '127.0.0.1:1', 'list-topics'])
  assert.equal(code, 1)
  assert.match(err, /127\.0\.0\.1:1/)
})

test('a bad configuration stops the start with exit code 2, naming key, value and source', async () => {
  const cwd = await mkdtemp(join(dir, 'cwd-'))
  await writeFile(join(cwd, 'eastguard.yaml'), 'cache_bites: 5\n')
  const { code, err } = await run('eastguard', ['server'], { cwd })
  assert.equal(code, 2)
  assert.match(err, /cache_bites is 5 \(file eastguard.yaml\).*did you mean cache_bytes/)
})

test('a port that is taken ends the start with exit code 4, a data directory in use with 3', async () => {
  const others = ['--http-port', '0', '--cluster-port', '0', '--data-port', '0']
  const port = ['--client-port', String(broker.port), ...others]
  const other = join(dir, 'other')
  const listen = await run('eastguard', ['server', '--data-dir', other, ...port])
  assert.equal(listen.code, 4, listen.err)
  assert.match(listen.err, new RegExp(`${broker.port}`))
  assert.match(listen.err, /"code":"EADDRINUSE"/)
  const node: unknown = JSON.parse(await readFile(join(other, 'node.json'), 'utf8'))
  assert.ok(!Object.hasOwn(node as object, 'cluster'), 'it has founded a cluster, and stays in it')
  const free = ['--client-port', '0', ...others]
  const used = await run('eastguard', ['server', '--data-dir', join(dir, 'data'), ...free])
  assert.equal(used.code, 3, used.err)
  assert.match(used.err, /DATA_DIR_IN_USE/)
})

test('SIGTERM ends a broker with exit code 0, and what was stored is there at the next start', async () => {
  const dataDir = join(dir, 'restart')
  const first = await spawnBroker({ dataDir })
  await first.ready()
  const seeds = ['--seeds', `127.0.0.1:${first.port}`]
  assert.equal((await run('eg-cli', [...seeds, 'create-topic', 't', '--partitions', '1'])).code, 0)
  assert.equal((await run('eg-cli', [...seeds, 'publish', 't', 'k', 'kept'])).code, 0)
  first.child.kill('SIGTERM')
  assert.equal(await first.exited, 0, first.log())
  const second = await spawnBroker({ dataDir }, { port: first.port, httpPort: first.httpPort })
  await second.ready()
  const { out } = await run('eg-cli', [...seeds, 'consume', 't', '--raw'])
  second.child.kill('SIGKILL')
  await second.exited
  assert.equal(out.toString(), 'kept\n')
})

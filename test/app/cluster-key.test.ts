// The cluster key as people use it: files, processes, logs.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { EastGuard } from '../../src/index.ts'
import { type BrokerProcess, freePort, spawnBroker } from '../support/broker-process.ts'
import { within } from '../support/time.ts'

const PROGRAM = fileURLToPath(new URL('../../src/cli/eastguard.js', import.meta.url))
const KEY = 'kept for ourselves, all of us'
const OTHER = 'kept for themselves, by others'

async function scratch(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'eastguard-key-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  return dir
}

test('two processes with one key are a cluster, and a third with another key is told why it is not in it', async (t) => {
  const dir = await scratch(t)
  const brokers: BrokerProcess[] = []
  t.after(() => {
    for (const { child } of brokers) child.kill('SIGKILL')
    return Promise.all(brokers.map(({ exited }) => exited))
  })
  const start = async (name: string, key: string, port: number, seeds: readonly number[]) => {
    const keyFile = join(dir, `${name}.key`)
    await writeFile(keyFile, `${key}\n`)
    const flags = ['--cluster-key-file', keyFile, '--cluster-port', String(port)]
    flags.push('--metadata-shards', '8', '--display-name', name, '--wal-file-bytes', '1MiB')
    if (seeds.length > 0) flags.push('--join-seed-nodes', seeds.map((s) => `127.0.0.1:${s}`).join())
    const broker = await spawnBroker({ dataDir: join(dir, name), flags })
    brokers.push(broker)
    return broker
  }
  const seed = await freePort()
  const a = await start('a', KEY, seed, [])
  await a.ready()
  const b = await start('b', KEY, await freePort(), [seed])
  await b.ready(30_000)
  const c = await start('c', OTHER, await freePort(), [seed])
  await within(20_000, 'it is told', () => c.log().includes('different cluster keys'))
  await within(5000, 'the other side tells', () => a.log().includes('different cluster keys'))
  const client = new EastGuard({ seeds: [`127.0.0.1:${b.port}`] })
  t.after(() => client.close())
  await client.admin().createTopic('t')
  const { brokers: known } = await client.admin().describeCluster()
  assert.equal(known.length, 2)
  for (const broker of brokers) {
    const log = broker.log()
    assert.ok(!log.includes(KEY) && !log.includes(OTHER))
  }
})

test('the configuration is shown with stars in place of the key', async () => {
  for (const words of [[], ['--json']]) {
    const child = spawn(process.execPath, [PROGRAM, 'config', 'show', ...words], {
      env: { ...process.env, EASTGUARD_CLUSTER_KEY: KEY },
    })
    let out = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        out += chunk
      })
    }
    const code = await new Promise((resolve) => {
      child.once('close', resolve)
    })
    assert.equal(code, 0)
    assert.match(out, /cluster_key\b.*[\s\S]*\*{8}/)
    assert.ok(!out.includes(KEY))
  }
})

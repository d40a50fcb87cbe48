import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { EastGuard } from '../../src/index.ts'
import { systemClock } from '../../src/io/clock/system-clock.ts'
import { nodeStreams } from '../../src/io/tcp/node-streams.ts'
import { freePort } from '../support/broker-process.ts'
import { FakeBroker } from './support/fake-broker.ts'

test('over TCP, 20,000 records in every shape go out and come back', async () => {
  const address = { host: '127.0.0.1', port: await freePort() }
  const broker = new FakeBroker(systemClock(), address)
  broker.create('t', 4)
  await broker.start(nodeStreams)
  const client = new EastGuard({ seeds: [`127.0.0.1:${address.port}`] })
  const producer = client.producer({ codec: 'zstd' })
  const values = Array.from({ length: 20_000 }, (_, i) => `${i}`)
  const places = await producer.sendBatch(
    values.map((value) => ({ topic: 't', key: `k${value}`, value, headers: { n: value } })),
  )
  assert.equal(places.length, values.length)
  const seen = new Set<string>()
  for await (const record of client.consumer({ topic: 't', stopAtEnd: true })) {
    const value = Buffer.from(record.value ?? []).toString()
    assert.equal(Buffer.from(record.key ?? []).toString(), `k${value}`)
    assert.equal(Buffer.from(record.headers[0]?.value ?? []).toString(), value)
    assert.equal(places[Number(value)]?.offset, record.offset)
    seen.add(value)
  }
  assert.equal(seen.size, values.length)
  await client.close()
  await broker.stop()
})

test('a process that waits for its broker stays alive until it knows', async () => {
  const index = pathToFileURL(join('build', 'src', 'index.js')).href
  const script = `
    import { EastGuard } from '${index}'
    const client = new EastGuard({ seeds: ['127.0.0.1:${await freePort()}'] })
    const error = await client.admin().listTopics({ timeoutMs: 400 }).catch((error) => error)
    console.log(error.code)
    await client.close()
  `
  const run = promisify(execFile)
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script])
  assert.equal(stdout.trim(), 'CONNECTION_FAILED')
})

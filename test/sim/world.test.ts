import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simWorld } from '../../src/sim/world.ts'
import { settle } from '../ports/support.ts'

/** A small life: a server that stores what it is sent and answers when it is durable, and a client with jitter. */
async function transcript(seed: number): Promise<string[]> {
  const world = simWorld(seed)
  const lines: string[] = []
  const say = (what: string): void => {
    lines.push(`${world.clock.monotonic().toFixed(3)} ${what}`)
  }
  const serverProcess = world.process('server', world.disk())
  const server = { ...serverProcess.ports, disk: serverProcess.disk }
  const client = world.process('client').ports
  let done = false
  void (async () => {
    const file = await server.disk.open('log', { mode: 'create', durable: true })
    let end = 0
    await server.streams.listen({ host: 'server', port: 1 }, (connection) => {
      connection.handle({
        onData: (chunk) => {
          say(`server got ${chunk.length}`)
          const at = end
          end += chunk.length
          const kept = chunk.slice()
          void file.write([kept], at).then(() => connection.write([kept.subarray(0, 1)]))
        },
        onClose: () => say('server closed'),
      })
    })
    const connection = await client.streams.connect({ host: 'server', port: 1 }, { timeoutMs: 50 })
    connection.handle({
      onData: (chunk) => say(`client got ${chunk.length}`),
      onClose: () => {
        done = true
      },
    })
    for (let i = 0; i < 10; i++) {
      connection.write([client.random.bytes(30_000)])
      await new Promise<void>((resolve) => {
        client.clock.after(client.random.float() * 10, resolve)
      })
    }
    connection.end()
  })()
  await world.clock.runUntil(() => done, settle)
  return lines
}

test('one seed gives one run, to the byte and the microsecond; another gives another', async () => {
  const first = await transcript(1)
  assert.ok(first.length > 20)
  assert.deepEqual(await transcript(1), first)
  assert.notDeepEqual(await transcript(2), first)
})

test('a simulation that can go no further says so instead of hanging', async () => {
  const { clock } = simWorld(1)
  await assert.rejects(
    clock.runUntil(() => false, settle),
    /standstill/,
  )
})

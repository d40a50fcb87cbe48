// One bad client never slows another. In virtual time nothing is spent on computing, so what a good client waits longer for
// than alone, it waits for a bad one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardClient } from '../../../src/client/client.ts'
import type { TopicId } from '../../../src/model/ids.ts'
import type { Connection } from '../../../src/ports/streams.ts'
import type { SimProcess } from '../../../src/sim/process.ts'
import { BROKER_HOST, BROKER_PORT, storageMachine } from '../../../src/sim/storage/machine.ts'
import { storagePlan } from '../../../src/sim/storage/plan.ts'
import { simWorld, type World } from '../../../src/sim/world.ts'
import { fetch } from '../../../src/wire/native/fetch.ts'
import { requestFrame } from '../../../src/wire/native/header.ts'
import { hello } from '../../../src/wire/native/hello.ts'
import { settle } from '../../ports/support.ts'

const SENDS = 400
const EACH_MS = 10
const HELLO = requestFrame(hello, 1, 1, {
  versionMin: 1,
  versionMax: 1,
  clientName: 'bad',
  clusterId: '',
})

type Bad = (client: SimProcess, topicId: TopicId) => Promise<void>

async function connect({ ports }: SimProcess): Promise<Connection> {
  const to = { host: BROKER_HOST, port: BROKER_PORT }
  const connection = await ports.streams.connect(to, { timeoutMs: 1000 })
  connection.handle({ onData: () => {}, onClose: () => {} })
  return connection
}

function pause({ ports }: SimProcess, ms: number): Promise<void> {
  return new Promise((resolve) => void ports.clock.after(ms, resolve))
}

const BAD: Readonly<Record<string, Bad>> = {
  'says nothing': async (client) => {
    await connect(client)
  },
  'sends a byte now and then': async (client) => {
    const connection = await connect(client)
    for (const byte of HELLO) {
      connection.write([Uint8Array.of(byte)])
      await pause(client, 100)
    }
  },
  'never reads its answers': async (client, topicId) => {
    const connection = await connect(client)
    connection.pause()
    connection.write([HELLO])
    const partitions = [{ topicId, partition: 0, offset: 0, maxBytes: 4_000_000 }]
    const request = { maxWaitMs: 0, minBytes: 1, maxBytes: 4_000_000, partitions }
    for (let id = 2; id < 200; id++) connection.write([requestFrame(fetch, 1, id, request)])
  },
  'vanishes in the middle of a frame, again and again': async (client) => {
    for (;;) {
      const connection = await connect(client)
      connection.write([HELLO, HELLO.subarray(0, 7)])
      await pause(client, 5)
      connection.destroy()
      await pause(client, 20)
    }
  },
  'sends garbage': async (client) => {
    for (;;) {
      const connection = await connect(client)
      connection.write([HELLO, client.ports.random.bytes(5000)])
      await pause(client, 30)
      connection.destroy()
    }
  },
}

/** How long each send took, in virtual ms, sorted. */
async function sendTimes(bad: readonly Bad[]): Promise<readonly number[]> {
  const world: World = simWorld(1)
  const wrong: string[] = []
  const watcher = { say: () => {}, violation: (what: string) => void wrong.push(what) }
  const machine = storageMachine(world, storagePlan(1), watcher)
  machine.start()
  const good = world.process('good')
  const client = new EastGuardClient({ seeds: [`${BROKER_HOST}:${BROKER_PORT}`] }, good.ports)
  const times: number[] = []
  const work = async (): Promise<void> => {
    const topic = await client.admin().createTopic('t', { policy: { partitions: 1 } })
    const producer = client.producer({ lingerMs: 0 })
    for (const [i, behave] of bad.entries()) {
      // A bad client's calls fail when the broker has had enough of it.
      behave(world.process(`bad-${i}`), topic.topicId).catch(() => {})
    }
    for (let i = 0; i < SENDS; i++) {
      const began = world.clock.monotonic()
      await producer.send({ topic: 't', value: 'x'.repeat(500) })
      times.push(world.clock.monotonic() - began)
      await pause(good, EACH_MS)
    }
  }
  let done = false
  const finished = work().finally(() => {
    done = true
  })
  await world.clock.runUntil(() => done, settle)
  await finished
  assert.deepEqual(wrong, [])
  return times.sort((a, b) => a - b)
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.floor(share * (sorted.length - 1))] as number
}

test('ten bad clients of each kind slow nobody', async () => {
  const alone = await sendTimes([])
  const all = Object.values(BAD).flatMap((behave) => Array.from({ length: 10 }, () => behave))
  const beside = await sendTimes(all)
  for (const share of [0.5, 0.99]) {
    const [one, other] = [at(alone, share), at(beside, share)]
    assert.ok(other <= one * 1.25, `${share}: ${other} ms beside them, ${one} ms alone`)
  }
})

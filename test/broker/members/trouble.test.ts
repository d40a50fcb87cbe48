// Brokers that are killed, started again, stopped, cut off and reset while packets are lost, doubled and overtaken. Then all
// of that ends, and those that live must find one another.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Prng, prng } from '../../../src/base/prng.ts'
import { agreed, type Broker, Net } from './support.ts'

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f']
const TROUBLES = 25
/** The dead are tried again after half a minute at the latest, and who comes and goes is held back no longer than the test. */
const CALM_MS = 120_000

async function trouble(net: Net, chance: Prng): Promise<void> {
  const name = NAMES[chance.below(NAMES.length)] as string
  const other = NAMES[chance.below(NAMES.length)] as string
  const broker = net.brokers.get(name) as Broker
  const { network } = net.world
  const { process } = broker
  switch (chance.below(6)) {
    case 0:
      return process.alive ? process.kill() : restart(net, name, chance)
    case 1:
      return process.alive ? process.powerOff({ keepUnsynced: true }) : restart(net, name, chance)
    case 2:
      if (!process.alive) return restart(net, name, chance)
      return process.paused ? process.resume() : process.pause()
    case 3:
      return name === other ? undefined : net.partition([name], [other], chance.below(2) === 0)
    case 4:
      return network.resetConnections(name)
    case 5:
      return network.change(name, other, { packetLoss: chance.float() / 2, packetDoubling: 0.2 })
  }
}

async function restart(net: Net, name: string, chance: Prng): Promise<void> {
  await net.start(name, [NAMES[chance.below(NAMES.length)] as string])
}

for (let seed = 1; seed <= 6; seed++) {
  test(`after trouble of every kind all see all again (seed ${seed})`, async () => {
    const net = new Net(seed)
    const chance = prng(seed)
    const before = await net.cluster(NAMES)
    for (let i = 0; i < TROUBLES; i++) {
      await trouble(net, chance)
      await net.run(chance.below(6000))
    }
    net.world.network.calm()
    for (const name of NAMES) {
      const { process } = net.brokers.get(name) as Broker
      if (!process.alive) await restart(net, name, chance)
      else if (process.paused) process.resume()
    }
    const after = NAMES.map((name) => net.brokers.get(name) as Broker)
    await net.until('all see all', () => agreed(after), CALM_MS)
    for (const one of after) {
      assert.deepEqual(one.members.cluster, before[0]?.joined)
      assert.deepEqual([one.refusals, one.foreign, one.failed], [[], [], undefined])
      assert.equal(await one.metric('malformed_packets_total'), 0)
    }
  })
}

// What goes wrong. Never more disks than may go bad with nothing lost.

import type { Broker } from './broker.ts'
import type { TroubleKind } from './profile.ts'
import type { World } from './world.ts'

export function makeTrouble(world: World): void {
  const { chance, profile } = world
  const kind = profile.troubles[chance.below(profile.troubles.length)]
  if (kind !== undefined) make(world, kind)
}

function make(world: World, kind: TroubleKind): void {
  const { chance, brokers } = world
  const any = brokers[chance.below(brokers.length)] as Broker
  const leader = leaderOf(world) ?? any
  const ms = 200 + chance.float() * 3500
  switch (kind) {
    case 'kill':
      return kill(world, any)
    case 'kill-leader':
      return kill(world, leader)
    case 'kill-all':
      for (const broker of brokers) kill(world, broker)
      return
    case 'pause-leader':
      leader.pausedUntil = world.clock.monotonic() + ms
      return world.say(`${leader.name} is stopped for ${Math.round(ms)} ms`)
    case 'stick-disk':
      any.disk.stuckUntil = world.clock.monotonic() + ms
      return world.say(`the disk of ${any.name} is stuck for ${Math.round(ms)} ms`)
    case 'cut-link':
      return cut(world, any, brokers[chance.below(brokers.length)] as Broker, true)
    case 'one-way':
      return cut(world, any, brokers[chance.below(brokers.length)] as Broker, false)
    case 'isolate':
      return isolate(world, any)
    case 'isolate-leader':
      return isolate(world, leader)
    case 'cut-leader-off':
      return cutOff(world, leader, ms)
    case 'roll-and-cancel':
      return rollAndCancel(world, leader)
    case 'depose':
      return world.elect()
    case 'depose-softly':
      return world.electSoon()
    case 'roll':
      return roll(world, leader)
    case 'suspect':
      any.suspectedUntil = world.clock.monotonic() + ms
      return world.say(`${any.name} is held dead for ${Math.round(ms)} ms`)
    case 'damage':
      damage(world, any)
      return
    case 'lose-disk':
      return loseDisk(world, any)
    case 'drain':
      return drain(world, any)
    case 'heal':
      return heal(world)
  }
}

function leaderOf(world: World): Broker | undefined {
  const { register } = world
  const leader = register.segments(register.index).at(-1)?.replicas[0]
  return world.brokers.find(({ id }) => id === leader)
}

function kill(world: World, broker: Broker): void {
  if (broker.disk.lost) return
  world.say(`${broker.name} is killed`)
  world.kills(broker)
}

function cut(world: World, a: Broker, b: Broker, bothWays: boolean): void {
  if (a === b) return
  world.say(`${a.name} ${bothWays ? '-' : '>'} ${b.name} is cut`)
  world.net.cut.add(`${a.id}>${b.id}`)
  if (bothWays) world.net.cut.add(`${b.id}>${a.id}`)
  world.net.breaks(a.id, b.id)
}

function isolate(world: World, broker: Broker): void {
  for (const other of world.brokers) cut(world, broker, other, true)
  if (world.coordinator?.host === broker.process) world.electSoon()
}

/** What is open and led by the broker is old enough. */
function roll({ register }: World, { process, paused }: Broker): void {
  const open = register.segments(register.index).at(-1)
  if (open !== undefined && !paused) process?.leading.get(open.segment)?.rolls('old')
}

/** The leader goes on, and then it may be cut off. */
function rollAndCancel(world: World, leader: Broker): void {
  const { chance } = world
  roll(world, leader)
  world.later(world.netMs() * 4, () => world.cancelsEnd())
  if (chance.below(2) > 0) return
  world.later(300 + chance.float() * 700, () => {
    if (!world.calm) cutOff(world, leader, 3000)
  })
}

/** From the coordinator only, which holds it dead: its followers and producers still hear it. */
function cutOff(world: World, leader: Broker, ms: number): void {
  const host = world.coordinator?.host.broker
  if (host === undefined || host === leader) return
  cut(world, leader, host, true)
  leader.suspectedUntil = world.clock.monotonic() + ms
  world.later(ms * 1.5, () => {
    world.net.cut.delete(`${leader.id}>${host.id}`)
    world.net.cut.delete(`${host.id}>${leader.id}`)
  })
  // A leader that nothing is produced to notices nothing.
  if (world.chance.below(2) === 0) world.producers.rest(1500 + ms)
}

function heal(world: World): void {
  world.net.cut.clear()
  world.say('all links are whole')
}

/** False: no disk may go bad. */
export function damage(world: World, broker: Broker): boolean {
  const { chance } = world
  if (world.disksLeft === 0 || broker.disk.lost || broker.disk.segments.size === 0) return false
  world.disksLeft--
  const numbers = [...broker.disk.segments.keys()]
  const number = numbers[Math.max(0, numbers.length - 1 - chance.below(2))] as number
  const readable = chance.below(broker.disk.segment(number).items.length + 1)
  world.kills(broker)
  broker.disk.damage(number, readable)
  world.say(
    `${broker.name} is killed, and its disk is damaged: segment ${number} from ${readable} on`,
  )
  return true
}

/** For ever: its machine comes back as another broker. */
function loseDisk(world: World, broker: Broker): void {
  if (world.disksLeft === 0 || broker.disk.lost) return
  world.disksLeft--
  world.say(`the disk of ${broker.name} is lost`)
  world.kills(broker)
  broker.disk.lost = true
  const another = world.addBroker()
  world.later(world.chance.float() * 3000, () => another.start())
}

function drain(world: World, broker: Broker): void {
  const able = world.brokers.filter(({ disk, draining }) => !disk.lost && !draining)
  if (able.length <= world.profile.replicationFactor) return
  broker.draining = true
  world.say(`${broker.name} is to be drained`)
}

export function makePeace(world: World): void {
  heal(world)
  for (const broker of world.brokers) {
    broker.pausedUntil = 0
    broker.suspectedUntil = 0
    broker.disk.stuckUntil = 0
    broker.start()
  }
  const { coordinator } = world
  if (coordinator === undefined || !coordinator.host.up || !coordinator.acts) world.electSoon()
}

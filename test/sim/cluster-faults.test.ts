import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DatagramSocket } from '../../src/ports/datagrams.ts'
import { Faults } from '../../src/sim/cluster/faults.ts'
import { Machines } from '../../src/sim/cluster/machines.ts'
import { Membership } from '../../src/sim/cluster/membership.ts'
import { clusterPlan } from '../../src/sim/cluster/plan.ts'
import type { Step } from '../../src/sim/cluster/step.ts'
import type { Machine } from '../../src/sim/machine.ts'
import { simWorld, type World } from '../../src/sim/world.ts'
import { settle } from '../ports/support.ts'

const HOSTS = ['b1', 'b2', 'b3'] as const

interface Rig {
  readonly world: World
  readonly faults: Faults
  readonly machines: readonly Machine[]
  readonly lost: readonly number[]
  readonly violations: readonly string[]
  readonly pass: (ms: number) => Promise<void>
  /** Who reaches whom within 30 ms, as `b1b2`. */
  readonly reached: () => Promise<string>
}

async function rig(): Promise<Rig> {
  const world = simWorld(1)
  const brokers = HOSTS.map(() => ({ clockRate: 1, clockStartMs: 0 }))
  const violations: string[] = []
  const watcher = { say: () => {}, violation: (what: string) => void violations.push(what) }
  const { all } = new Machines(world, { ...clusterPlan(1), brokers }, watcher)
  const lost: number[] = []
  const faults = new Faults({
    world,
    machines: all,
    membership: new Membership(world, all, 1, watcher),
    hosts: HOSTS,
    watcher,
    onDiskLost: (broker) => lost.push(broker),
  })
  let heard: string[] = []
  const sockets: DatagramSocket[] = []
  for (const host of HOSTS) {
    const { datagrams } = world.process(host).ports
    sockets.push(
      await datagrams.bind({ host, port: 9 }, (_, from) => heard.push(`${from.host}${host}`)),
    )
  }
  const pass = (ms: number): Promise<void> => world.clock.advance(ms, settle)
  const reached = async (): Promise<string> => {
    heard = []
    for (const [i, from] of HOSTS.entries()) {
      for (const to of HOSTS) {
        if (from !== to) sockets[i]?.send(Uint8Array.of(1), { host: to, port: 9 })
      }
    }
    await pass(30)
    return heard.sort().join(' ')
  }
  return { world, faults, machines: all, lost, violations, pass, reached }
}

const ALL = 'b1b2 b1b3 b2b1 b2b3 b3b1 b3b2'

test('cuts between brokers: of one from all, in one direction, and between two only', async () => {
  const cases: readonly (readonly [Step, string])[] = [
    [{ kind: 'partition', side: ['b1'], way: 'both', forMs: 100 }, 'b2b3 b3b2'],
    [{ kind: 'partition', side: ['b1'], way: 'out', forMs: 100 }, 'b2b1 b2b3 b3b1 b3b2'],
    [{ kind: 'partition', side: ['b1'], way: 'in', forMs: 100 }, 'b1b2 b1b3 b2b3 b3b2'],
    [{ kind: 'cut', from: 'b1', to: 'b2', way: 'both', forMs: 100 }, 'b1b3 b2b3 b3b1 b3b2'],
    [{ kind: 'cut', from: 'b1', to: 'b2', way: 'one', forMs: 100 }, 'b1b3 b2b1 b2b3 b3b1 b3b2'],
    [
      {
        kind: 'slow-link',
        from: 'b3',
        to: 'b1',
        latencyMs: 200,
        bytesPerMs: 100,
        forMs: 100,
      },
      'b1b2 b1b3 b2b1 b2b3 b3b2',
    ],
    [
      {
        kind: 'lossy-link',
        from: 'b3',
        to: 'b1',
        lost: 0,
        doubled: 1,
        late: 0,
        lateMs: 1,
        forMs: 100,
      },
      'b1b2 b1b3 b2b1 b2b3 b3b1 b3b1 b3b2',
    ],
  ]
  for (const [step, expected] of cases) {
    const { faults, reached, pass } = await rig()
    assert.equal(await reached(), ALL)
    faults.take(step)
    assert.equal(await reached(), expected, JSON.stringify(step))
    await pass(300)
    assert.equal(await reached(), ALL, 'over')
    assert.equal(faults.hits.get(step.kind), 1)
  }
})

test('a cut that ends leaves those alone that have not ended; calm ends all but one that lasts', async () => {
  const { faults, reached, pass } = await rig()
  faults.take({ kind: 'partition', side: ['b1'], way: 'both', forMs: 100 })
  faults.take({ kind: 'cut', from: 'b1', to: 'b2', way: 'both', forMs: 300 })
  assert.equal(await reached(), 'b2b3 b3b2')
  await pass(100)
  assert.equal(await reached(), 'b1b3 b2b3 b3b1 b3b2')
  await pass(300)
  assert.equal(await reached(), ALL)
  faults.take({ kind: 'partition', side: ['b1', 'b2'], way: 'both', forMs: 10_000 })
  assert.equal(await reached(), 'b1b2 b2b1')
  faults.calm()
  assert.equal(await reached(), ALL)
  faults.cutForEver('b2', 'b3')
  assert.equal(await reached(), 'b1b2 b1b3 b2b1 b3b1')
  await pass(20_000)
  assert.equal(await reached(), 'b1b2 b1b3 b2b1 b3b1')
  faults.take({ kind: 'partition', side: ['b1'], way: 'both', forMs: 100 })
  assert.equal(await reached(), 'b1b2 b1b3 b2b1 b3b1', 'nothing strikes any more')
})

test('machines: several lose their power at once, disks are wiped and come back as they were', async () => {
  const { world, faults, machines, lost, violations, pass } = await rig()
  const up = (): string => machines.map(({ ready }) => (ready ? 'up' : 'down')).join(' ')
  for (const machine of machines) machine.start()
  await pass(3000)
  assert.equal(up(), 'up up up')
  const idOf = (broker: number): string | undefined => machines[broker]?.nodeId
  const before = HOSTS.map((_, i) => idOf(i))
  faults.take({ kind: 'power-cut', brokers: [0, 2], keep: 'none', downMs: [10, 1000] })
  await pass(500)
  assert.equal(up(), 'up up down')
  await assert.rejects(
    driven(
      world,
      world.process('client').ports.streams.connect({ host: 'b3', port: 2921 }, { timeoutMs: 100 }),
    ),
    /no answer/,
  )
  await pass(3000)
  assert.equal(up(), 'up up up')
  assert.deepEqual(
    HOSTS.map((_, i) => idOf(i)),
    before,
  )
  faults.take({ kind: 'copy', broker: 1 })
  faults.take({ kind: 'wipe', broker: 1, downMs: 10 })
  await pass(3000)
  const afterWipe = idOf(1)
  assert.notEqual(afterWipe, before[1], 'a wiped disk is another broker')
  faults.take({ kind: 'restore', broker: 1, downMs: 10 })
  await pass(3000)
  assert.equal(idOf(1), before[1], 'and the copy is the first again')
  assert.deepEqual(lost, [1, 1])
  faults.take({ kind: 'restore', broker: 0, downMs: 10 })
  assert.deepEqual(lost, [1, 1], 'of this there is no copy')
  faults.take({ kind: 'pause', broker: 0, forMs: 60_000, timersFirst: false })
  faults.take({ kind: 'pause', broker: 0, forMs: 5, timersFirst: false })
  assert.equal(faults.hits.get('pause'), 1, 'one that is paused already is not paused again')
  assert.deepEqual(violations, [])
})

async function driven<T>(world: World, promise: Promise<T>): Promise<T> {
  const settled = promise.catch(() => undefined)
  await world.clock.advance(1000, settle)
  await settled
  return promise
}

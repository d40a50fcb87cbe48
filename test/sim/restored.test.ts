// A broker whose disk was put back as it was before its last start: it has forgotten what it told the others since, and they
// must not let it tell them otherwise. Whole brokers of one cluster, on simulated machines.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EastGuardClient } from '../../src/client/client.ts'
import { CLIENT_PORT, Machines } from '../../src/sim/cluster/machines.ts'
import { Membership } from '../../src/sim/cluster/membership.ts'
import { clusterPlan } from '../../src/sim/cluster/plan.ts'
import { SHARDS } from '../../src/sim/cluster/step.ts'
import type { Machine } from '../../src/sim/machine.ts'
import type { DiskImage } from '../../src/sim/ports/disk.ts'
import { simWorld, type World } from '../../src/sim/world.ts'
import { settle } from '../ports/support.ts'

const KILLED = { keepUnsynced: true } as const
const WITHIN_MS = 60_000

class Cluster {
  readonly world: World
  readonly machines: readonly Machine[]
  readonly story: string[] = []
  readonly violations: string[] = []
  private readonly whole: Machines
  private readonly membership: Membership
  private topics = 0

  constructor(seed: number) {
    this.world = simWorld(seed)
    const brokers = [0, 1, 2].map(() => ({ clockRate: 1, clockStartMs: 0 }))
    const watcher = {
      say: (line: string) => void this.story.push(line),
      violation: (what: string) => void this.violations.push(what),
    }
    this.whole = new Machines(this.world, { ...clusterPlan(seed), brokers }, watcher)
    this.machines = this.whole.all
    this.membership = new Membership(this.world, this.machines, SHARDS, watcher)
  }

  machine(number: 1 | 2 | 3): Machine {
    const machine = this.machines[number - 1]
    assert.ok(machine !== undefined)
    return machine
  }

  async start(): Promise<void> {
    this.machine(1).start()
    await this.until('the founder is up', () => this.machine(1).ready)
    this.whole.found()
    this.membership.start()
    await this.until('all are up', () => this.whole.ready && this.membership.settled)
  }

  async restart(number: 1 | 2 | 3): Promise<void> {
    this.machine(number).kill(KILLED, 10, 'is restarted')
    await this.until('it is up again', () => this.machine(number).ready)
  }

  /** Its disk as it is while it is down; then it starts again, and all meet it. */
  async copyAndRestart(number: 1 | 2 | 3): Promise<DiskImage> {
    const machine = this.machine(number)
    machine.kill({ keepUnsynced: false }, 10, 'is down for a copy')
    const image = machine.disk.snapshot()
    await this.until('it is up again', () => machine.ready)
    await this.run(3000)
    return image
  }

  until(what: string, done: () => boolean): Promise<void> {
    const { clock } = this.world
    const deadline = clock.monotonic() + WITHIN_MS
    return clock
      .runUntil(() => done() || this.violations.length > 0 || clock.monotonic() > deadline, settle)
      .then(() => {
        assert.deepEqual(this.violations, [])
        assert.ok(done(), `${what}\n${this.story.slice(-30).join('\n')}`)
      })
  }

  run(ms: number): Promise<void> {
    return this.world.clock.advance(ms, settle)
  }

  /** A topic is made at a broker. */
  async works(number: 1 | 2 | 3): Promise<void> {
    const seeds = [`${this.machine(number).host}:${CLIENT_PORT}`]
    const client = new EastGuardClient({ seeds }, this.world.process('client').ports)
    let ended = false
    const made = client
      .admin()
      .createTopic(`topic-${++this.topics}`, { timeoutMs: 20_000 })
      .finally(() => {
        ended = true
      })
    made.catch(() => undefined)
    await this.until('a topic is made', () => ended)
    await made
    await client.close()
  }

  cutOff(number: 1 | 2 | 3, cut: boolean): void {
    const { network } = this.world
    const { host } = this.machine(number)
    for (const { host: other } of this.machines) {
      if (other === host) continue
      for (const [from, to] of [
        [host, other],
        [other, host],
      ] as const) {
        if (cut) network.cut(from, to)
        else network.heal(from, to)
      }
    }
  }

  bootCount(number: 1 | 2 | 3): number {
    const text = Buffer.from(this.machine(number).disk.bytesOf('node.json')).toString()
    return (JSON.parse(text) as { readonly starting: number }).starting
  }

  /** It is down for good, because others said what it is; and they work on. */
  async refused(number: 1 | 2 | 3, others: readonly (1 | 2 | 3)[]): Promise<void> {
    const machine = this.machine(number)
    await this.until('the copy is refused', () => machine.refuses)
    assert.ok(this.story.some((line) => line.includes(`${machine.host}: refuses to start`)))
    assert.ok(this.story.some((line) => line.includes('older copy of node')))
    const boots = this.bootCount(number)
    for (let i = 0; i < 3; i++) {
      machine.kill(KILLED, 10, 'is started by its supervisor')
      await this.until('it is refused again', () => machine.refuses)
      await this.run(200)
    }
    assert.equal(this.bootCount(number), boots, 'no start was begun')
    for (const other of others) await this.works(other)
    assert.deepEqual(this.violations, [])
  }
}

test('a copy from before the last start is refused, and the others go on; on an empty disk it is a new node', async () => {
  const cluster = new Cluster(1)
  await cluster.start()
  const image = await cluster.copyAndRestart(2)
  const before = cluster.machine(2).nodeId
  await cluster.works(2)
  cluster.machine(2).restore(image, 10, 'before its last start')
  await cluster.refused(2, [1, 3])
  cluster.machine(2).wipe(10)
  await cluster.until('it is there as another', () => cluster.machine(2).ready)
  assert.notEqual(cluster.machine(2).nodeId, before)
  await cluster.works(2)
})

test('also after those who have met the later start have all restarted', async () => {
  const cluster = new Cluster(2)
  await cluster.start()
  const image = await cluster.copyAndRestart(3)
  await cluster.restart(1)
  await cluster.restart(2)
  cluster.cutOff(3, true)
  cluster.machine(3).restore(image, 10, 'before its last start')
  // Whoever has the later start in memory only has forgotten it when the copy comes.
  await cluster.restart(1)
  await cluster.restart(2)
  cluster.cutOff(3, false)
  await cluster.refused(3, [1, 2])
})

test('also when the copy has started many times where it reached nobody', async () => {
  const cluster = new Cluster(3)
  await cluster.start()
  const image = await cluster.copyAndRestart(2)
  const met = cluster.bootCount(2)
  cluster.cutOff(2, true)
  cluster.machine(2).restore(image, 10, 'before its last start')
  for (let i = 0; i < 20; i++) {
    await cluster.run(300)
    cluster.machine(2).kill(KILLED, 10, 'is restarted')
  }
  await cluster.run(300)
  assert.ok(cluster.bootCount(2) > met + 10, 'it has counted past what the others have met')
  assert.ok(!cluster.machine(2).refuses)
  cluster.cutOff(2, false)
  await cluster.refused(2, [1, 3])
})

test('a broker that restarts many times on its own disk is refused by nobody', async () => {
  const cluster = new Cluster(4)
  await cluster.start()
  cluster.cutOff(2, true)
  for (let i = 0; i < 40; i++) {
    await cluster.run(100)
    cluster.machine(2).kill(KILLED, 10, 'is restarted')
  }
  cluster.cutOff(2, false)
  await cluster.until('it is up', () => cluster.machine(2).ready)
  await cluster.works(2)
  assert.ok(!cluster.story.some((line) => line.includes('a broker is refused')))
})

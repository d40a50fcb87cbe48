// A cluster in virtual time under one seed: machines whose clocks run up to 5 % apart, a network that loses, doubles, delays
// and overtakes packets and is cut in places, either way; processes that are killed, stopped, started again, with wiped disks
// or with disks put back; members that join through seeds (themselves among these) and leave. Then the trouble ends, and
// within a bound everybody must know who is there. A last one dies, and a last one leaves, which all must see in time, too.

import type { Address } from '../../../src/base/address.ts'
import { type Prng, prng } from '../../../src/base/prng.ts'
import type { Swim } from '../../../src/core/swim/swim.ts'
import type { SwimEvent, SwimSettings } from '../../../src/core/swim/types.ts'
import { clusterId } from '../../../src/model/ids.ts'
import type { Member, Packet, SyncRequest } from '../../../src/model/swim.ts'
import { SimClock } from '../../../src/sim/ports/clock.ts'
import { readPacket, writePacket } from '../../../src/wire/swim/packet.ts'
import {
  readSyncAnswer,
  readSyncRequest,
  writeSyncAnswer,
  writeSyncRequest,
} from '../../../src/wire/swim/sync.ts'
import { addressOf, brief, Machine } from './machine.ts'
import { Network } from './network.ts'
import { Truth } from './truth.ts'

const CLUSTER = { id: clusterId('c'.repeat(32)), foundedMs: 1_000_000, shards: 64 }

/** More happens in no millisecond. */
const STEPS_MAX = 20_000

export class Cluster {
  readonly chance: Prng
  readonly clock: SimClock = new SimClock()
  readonly truth: Truth
  readonly network: Network
  readonly machines: Machine[]
  readonly story: string[] = []
  readonly leaders: Map<number, { term: number; leader: string }> = new Map()
  /** Everything goes through its bytes: slower. */
  private readonly inBytes: boolean
  /** Nothing happens but that processes are stopped for a while. */
  onlySleep = false
  suspicions = 0
  deaths = 0
  lastDeathAt: number = Number.NEGATIVE_INFINITY
  held = 0
  events = 0

  constructor(seed: number, size: number, settings: SwimSettings) {
    this.chance = prng(seed)
    this.inBytes = seed % 5 === 0
    this.truth = new Truth((line) => this.say(line))
    this.network = new Network(this.chance)
    this.machines = Array.from(
      { length: size },
      (_, i) => new Machine(i, settings, this.chance, this.truth),
    )
  }

  get now(): number {
    return this.clock.monotonic()
  }

  say(line: string): void {
    this.story.push(`${(this.now / 1000).toFixed(3).padStart(8)} ${line}`)
  }

  after(ms: number, run: () => void): void {
    this.clock.after(ms, run)
  }

  run(ms: number): void {
    let over = false
    this.after(ms, () => {
      over = true
    })
    let [at, steps] = [this.now, 0]
    while (!over && this.truth.violations.length === 0) {
      this.clock.step()
      if (++steps < STEPS_MAX) continue
      if (this.now < at + 1) this.truth.violation('time stands still: something is due for ever')
      ;[at, steps] = [this.now, 0]
    }
  }

  // Machines.

  start(machine: Machine, sameBoot: boolean = false): void {
    if (machine.runs) return
    const swim = machine.start(this.now, sameBoot)
    this.truth.owns(swim.table.self)
    this.say(`${machine.name} starts: ${brief(machine.disk.node)}, boot ${machine.disk.boot}`)
    const founds = machine.index === 0 && machine.disk.cluster === undefined && this.isFirst()
    if (founds) swim.found(CLUSTER, machine.clock(this.now))
    else swim.join(this.seedsOf(machine), machine.clock(this.now))
    this.drive(machine)
  }

  private isFirst(): boolean {
    return this.machines.every(({ disk }) => disk.cluster === undefined)
  }

  private seedsOf(machine: Machine): readonly Address[] {
    const some = this.machines[this.chance.below(this.machines.length)] as Machine
    const name = this.chance.below(4)
    const itself = name === 0 ? { host: `alias-${machine.index}`, port: 2922 } : undefined
    // Whoever knows nobody must be told of somebody who lives.
    const all = machine.disk.cluster === undefined ? this.machines : [some]
    const seeds = [0, machine.index, ...all.map(({ index }) => index)].map(addressOf)
    if (machine.index === 0) seeds.push(addressOf(1 % this.machines.length))
    return itself === undefined ? seeds : [...seeds, itself]
  }

  kill(machine: Machine): void {
    if (!machine.runs) return
    this.say(`${machine.name} is killed`)
    machine.kill()
  }

  stop(machine: Machine, ms: number): void {
    if (!machine.runs || machine.stopped) return
    const { life } = machine
    machine.stopped = true
    machine.stopAtPingMs = 0
    this.say(`${machine.name} is stopped for ${ms.toFixed(0)} ms`)
    this.after(ms, () => {
      if (machine.life === life) this.resume(machine)
    })
  }

  resume(machine: Machine): void {
    if (!machine.stopped) return
    machine.stopped = false
    machine.awakeSince = this.now
    this.say(`${machine.name} goes on, ${machine.backlog.length} arrived`)
    const tickFirst = this.chance.below(2) === 0
    if (tickFirst) this.wake(machine)
    for (const arrived of machine.backlog.splice(0)) arrived()
    if (!tickFirst) this.wake(machine)
  }

  leave(machine: Machine): void {
    if (machine.swim === undefined || machine.stopped) return
    this.say(`${machine.name} leaves`)
    machine.swim.leave(machine.clock(this.now))
    this.drive(machine)
  }

  // One member.

  /** Runs when the process does: now, or when it goes on. */
  private deliver(machine: Machine, life: number, run: (swim: Swim) => void): void {
    const { swim } = machine
    if (swim === undefined || machine.life !== life) return
    if (machine.stopped) {
      machine.backlog.push(() => this.deliver(machine, life, run))
      return
    }
    run(swim)
    this.drive(machine)
  }

  private wake(machine: Machine): void {
    machine.wakeAt = Number.POSITIVE_INFINITY
    if (machine.swim === undefined || machine.stopped) return
    machine.swim.tick(machine.clock(this.now))
    this.drive(machine)
  }

  drive(machine: Machine): void {
    const { swim } = machine
    if (swim === undefined) return
    this.truth.owns(swim.table.self)
    const { packets, syncs, events } = swim.take()
    for (const { to, packet } of packets) this.send(machine, to, packet)
    for (const { to, request } of syncs) this.sync(machine, to, request)
    for (const event of events) this.note(machine, event)
    if (machine.stopAtPingMs > 0 && packets.some(({ packet }) => packet.body.kind === 'ping')) {
      this.stop(machine, machine.stopAtPingMs)
    }
    const next = machine.trueTime(swim.nextTick)
    if (!Number.isFinite(next) || next >= machine.wakeAt) return
    machine.wakeAt = next
    const { life } = machine
    this.after(next - this.now + 0.01, () => {
      if (machine.life === life && machine.wakeAt === next) this.wake(machine)
    })
  }

  private note(machine: Machine, event: SwimEvent): void {
    this.events++
    machine.observed.event(event)
    switch (event.kind) {
      case 'cluster':
        machine.disk.cluster = event.cluster
        return
      case 'joined':
        machine.disk.cluster = CLUSTER
        return this.say(`${machine.name} has joined`)
      case 'member': {
        const { member, was, restarted } = event
        if (member.state === 'suspect') this.suspicions++
        if (member.state === 'dead') {
          this.deaths++
          this.lastDeathAt = this.now
        }
        if (this.onlySleep) this.checkFairness(machine, member)
        const { name } = member.profile
        const change = `${was ?? 'unknown'} -> ${member.state}${restarted ? ', another life' : ''}`
        return this.say(`${machine.name} sees ${name} i${member.incarnation}: ${change}`)
      }
      case 'refused':
        machine.refused = true
        this.say(`${machine.name} is refused: boot ${event.boot} is remembered`)
        return this.kill(machine)
      case 'departed':
        return this.kill(machine)
      case 'foreign-cluster':
        return this.truth.violation(`${machine.name} met another cluster`)
      case 'held':
        this.held++
        return this.say(`${machine.name} holds back ${brief(event.node)} for ${event.holdMs}`)
      case 'hint':
      case 'forgotten':
      case 'no-seeds':
        return
    }
  }

  /** Whoever has just slept knows nothing bad of one that has been awake for long. */
  private checkFairness(machine: Machine, { node, state, profile }: Member): void {
    const { truth, now, machines } = this
    if (state === 'alive' || state === 'left' || now - machine.awakeSince > 1000) return
    const by = machine.swim?.table.get(node)?.suspectedBy ?? []
    if (state === 'suspect' && !by.includes(machine.disk.node)) return
    const about = machines.find(({ disk }) => disk.node === node)
    if (about?.stopped === false && now - about.awakeSince > 5000) {
      truth.violation(`${machine.name} has slept, and thinks ${profile.name} ${state}`)
    }
  }

  // What is sent.

  private machineAt({ host }: Address): Machine | undefined {
    return this.machines[Number(host.replace(/^(h|alias-)/, ''))]
  }

  private send(from: Machine, to: Address, packet: Packet): void {
    const target = this.machineAt(to)
    from.sends(this.now)
    for (const update of packet.updates) this.truth.sent(from.name, update)
    const bytes = this.inBytes ? writePacket(packet) : undefined
    if (target === undefined) return
    for (const delay of this.network.packet(from.index, target.index)) {
      this.after(delay, () => {
        const { life } = target
        const read = bytes === undefined ? packet : readPacket(bytes)
        this.deliver(target, life, (swim) => {
          swim.receive(read, addressOf(from.index), target.clock(this.now))
        })
      })
    }
  }

  private sync(from: Machine, to: Address, request: SyncRequest): void {
    const target = this.machineAt(to)
    const { life } = from
    for (const update of request.updates) this.truth.sent(from.name, update)
    const failed = (): void =>
      this.deliver(from, life, (swim) => swim.syncFailed(to, from.clock(this.now)))
    const carried = (): boolean =>
      target !== undefined && this.network.carries(from.index, target.index)
    this.after(this.network.delay(), () => {
      // Nothing says that packets vanish on the way: the time-out does.
      if (target === undefined || !carried()) return
      if (!target.runs) return failed()
      const asked = this.inBytes ? readSyncRequest(writeSyncRequest(request)) : request
      this.deliver(target, target.life, (swim) => {
        const answer = swim.answerSync(asked, target.clock(this.now))
        this.after(this.network.delay(), () => {
          if (!carried()) return
          const read = this.inBytes ? readSyncAnswer(writeSyncAnswer(answer)) : answer
          this.deliver(from, life, (member) => {
            member.syncAnswered(to, read, from.clock(this.now))
          })
        })
      })
    })
  }
}

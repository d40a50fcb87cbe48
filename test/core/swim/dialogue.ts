// A protocol run that reads as a dialogue: a few members with a script, a network in which every packet takes a millisecond
// unless its link is cut, and everything that is said, written down.
//
//   12.300  A -> B  ping                   [B suspect 1.0 by C]         what goes along in brackets: boot.incarnation
//   12.301  B -> A  ack                    [B alive 1.1]
//   12.301       A  B 1.1: suspect -> alive                             what A makes of it

import type { Address } from '../../../src/base/address.ts'
import { prng } from '../../../src/base/prng.ts'
import { Swim } from '../../../src/core/swim/swim.ts'
import { SWIM_SETTINGS, type SwimEvent, type SwimSettings } from '../../../src/core/swim/types.ts'
import { clusterId, type NodeId, nodeId } from '../../../src/model/ids.ts'
import type {
  ClusterIdentity,
  PacketBody,
  ShardHint,
  SyncAnswer,
  SyncRequest,
  Update,
} from '../../../src/model/swim.ts'
import { SimClock } from '../../../src/sim/ports/clock.ts'
import { SIZES } from './machine.ts'

const DELAY_MS = 1
const CLUSTER: ClusterIdentity = { id: clusterId('c'.repeat(32)), foundedMs: 5000, shards: 64 }

export interface StartOptions {
  /** Whom it asks to join; none: it founds, or waits. */
  readonly seeds?: readonly string[]
  readonly boot?: number
  /** Where it lives, if not at its own address. */
  readonly at?: string
  readonly cluster?: ClusterIdentity
}

function idOf(name: string): NodeId {
  return nodeId(name.charCodeAt(0).toString(16).repeat(16))
}
function nameOf(id: NodeId): string {
  return String.fromCharCode(Number.parseInt(id.slice(0, 2), 16))
}

export class Dialogue {
  private readonly clock = new SimClock()
  private readonly chance = prng(1)
  private readonly settings: SwimSettings
  private readonly lines: string[] = []
  /** By the host where it lives. */
  private readonly members = new Map<string, Swim>()
  private readonly asleep = new Map<string, (() => void)[]>()
  private readonly cuts = new Set<string>()
  private silent = false

  constructor(title: string, settings: Partial<SwimSettings> = {}) {
    this.settings = { ...SWIM_SETTINGS, ...settings }
    this.lines.push(`# ${title}`)
  }

  get text(): string {
    return `${this.lines.join('\n')}\n`
  }

  // The script.

  /** What stands there is read by people. */
  note(text: string): void {
    this.lines.push('', `## ${text}`)
  }

  start(name: string, { seeds = [], boot = 1, at = name, cluster }: StartOptions = {}): void {
    const own = { host: at, port: 2922 }
    const swim = new Swim(
      {
        node: idOf(name),
        boot,
        nonce: this.chance.u32(),
        cluster,
        peers: [],
        profile: {
          name,
          cluster: own,
          client: { host: at, port: 2921 },
          data: { host: at, port: 2923 },
          hostLabel: '',
          rackLabel: '',
          capacityBytes: 0,
          loadBytes: 0,
        },
        settings: this.settings,
        sizes: SIZES,
        chance: () => this.chance.float(),
      },
      this.now,
    )
    this.members.set(at, swim)
    const addresss = seeds.map((host) => ({ host, port: 2922 }))
    if (addresss.length === 0 && cluster === undefined) swim.found(CLUSTER, this.now)
    else swim.join(addresss, this.now)
    this.drive(at, swim)
  }

  found(name: string): void {
    this.change(name, (swim) => swim.found(CLUSTER, this.now))
  }

  /** Members A, B, ... that know one another and have nothing new to say. */
  settled(...names: readonly string[]): void {
    const [first = '', ...others] = names
    this.silent = true
    this.start(first)
    for (const name of others) this.start(name, { seeds: [first] })
    this.quietly(15_000)
  }

  kill(name: string): void {
    this.members.delete(name)
  }

  cut(a: string, b: string): void {
    this.cuts.add(`${a}${b}`).add(`${b}${a}`)
  }
  mend(): void {
    this.cuts.clear()
  }

  sleep(name: string): void {
    this.asleep.set(name, [])
  }
  awake(name: string): void {
    const arrived = this.asleep.get(name) ?? []
    this.asleep.delete(name)
    this.tick(name, this.member(name))
    for (const one of arrived) one()
  }

  leave(name: string): void {
    this.change(name, (swim) => swim.leave(this.now))
  }

  lead(name: string, shard: number, term: number): void {
    const hint: ShardHint = { shard, term, leader: idOf(name) }
    this.change(name, (swim) => swim.lead(hint, this.now))
  }

  view(name: string): void {
    const { version, stableSince, members } = this.member(name).view()
    const names = members.map(({ member, held }) => {
      return `${member.profile.name} ${member.boot}${held ? ' held' : ''}`
    })
    const moving = stableSince === undefined ? 'moves' : `stable since ${seconds(stableSince)}`
    this.line('', name, `view ${version}: ${names.join(', ')}; ${moving}`)
  }

  /** How long this member waits, and how long its periods are, in multiples. */
  health(name: string): void {
    this.line('', name, `health factor ${this.member(name).health.factor}`)
  }

  quietly(ms: number): void {
    this.silent = true
    this.run(ms)
    this.silent = false
  }

  run(ms: number): void {
    let over = false
    this.clock.after(ms, () => {
      over = true
    })
    while (!over) this.clock.step()
  }

  // What happens.

  private get now(): number {
    return this.clock.monotonic()
  }

  private member(host: string): Swim {
    const swim = this.members.get(host)
    if (swim === undefined) throw new Error(`nobody lives at ${host}`)
    return swim
  }

  private change(host: string, run: (swim: Swim) => void): void {
    const swim = this.member(host)
    run(swim)
    this.drive(host, swim)
  }

  private tick(host: string, swim: Swim): void {
    if (this.members.get(host) !== swim || this.asleep.has(host)) return
    if (this.now >= swim.nextTick) swim.tick(this.now)
    this.drive(host, swim)
  }

  private drive(host: string, swim: Swim): void {
    const { packets, syncs, events } = swim.take()
    for (const event of events) this.line('', host, told(event))
    for (const { to, packet } of packets) {
      const along = [...packet.updates.map(news), ...packet.hints.map(hinted)]
      const rest = along.length === 0 ? '' : `[${along.join(', ')}]`
      this.line(host, to.host, `${spoken(packet.body).padEnd(24)}${rest}`)
      this.carry(host, to, (member) => {
        member.receive(packet, { host, port: 2922 }, this.now)
      })
    }
    for (const { to, request } of syncs) this.ask(host, to, request)
    if (Number.isFinite(swim.nextTick)) {
      this.clock.after(swim.nextTick - this.now, () => this.tick(host, swim))
    }
  }

  private carry(from: string, to: Address, run: (member: Swim) => void): void {
    // b is another name of B.
    const host = to.host.toUpperCase()
    this.clock.after(DELAY_MS, () => {
      const member = this.members.get(host)
      if (member === undefined || this.cuts.has(`${from}${host}`)) return
      const arrived = (): void => {
        run(member)
        this.drive(host, member)
      }
      const waiting = this.asleep.get(host)
      if (waiting === undefined) arrived()
      else waiting.push(arrived)
    })
  }

  private ask(host: string, to: Address, request: SyncRequest): void {
    this.line(host, to.host, `sync   ${request.updates.map(news).join(', ')}`)
    this.carry(host, to, (member) => {
      const answer = member.answerSync(request, this.now)
      this.line(to.host, host, answered(answer))
      this.carry(to.host, { host, port: 2922 }, (asker) => {
        asker.syncAnswered(to, answer, this.now)
      })
    })
  }

  /** Who lives there now. */
  private nameAt(host: string): string {
    return this.members.get(host)?.table.self.profile.name ?? host
  }

  private line(from: string, to: string, what: string): void {
    if (this.silent) return
    const who = from === '' ? `     ${this.nameAt(to)}` : `${this.nameAt(from)} -> ${to}`
    this.lines.push(`${seconds(this.now).padStart(8)}  ${who}  ${what}`.trimEnd())
  }
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3)
}

function news({ member, suspectedBy }: Update): string {
  const by = suspectedBy.length === 0 ? '' : ` by ${suspectedBy.map(nameOf).join('+')}`
  return `${member.profile.name} ${member.state} ${member.boot}.${member.incarnation}${by}`
}

function hinted({ shard, term, leader }: ShardHint): string {
  return `shard ${shard} term ${term}: ${nameOf(leader)}`
}

function spoken(body: PacketBody): string {
  switch (body.kind) {
    case 'ping':
      return `ping ${nameOf(body.to)}`
    case 'ping-request':
      return `ping-request ${nameOf(body.target)}`
    case 'refused':
      return `refused boot ${body.refused.boot}, known ${body.boot}`
    case 'ack':
    case 'nack':
    case 'gossip':
      return body.kind
  }
}

function answered(answer: SyncAnswer): string {
  if (answer.kind === 'sync-answer') return `answer ${answer.updates.map(news).join(', ')}`
  return `refused: ${answer.reason}`
}

function told(event: SwimEvent): string {
  switch (event.kind) {
    case 'member': {
      const { member, was, restarted } = event
      const life = restarted ? ', another life' : ''
      const which = `${member.profile.name} ${member.boot}.${member.incarnation}`
      return `${which}: ${was ?? 'unknown'} -> ${member.state}${life}`
    }
    case 'held':
      return `${nameOf(event.node)} is held back for ${seconds(event.holdMs)} s`
    case 'forgotten':
      return `${nameOf(event.node)} is forgotten`
    case 'hint':
      return `knows ${hinted(event.hint)}`
    case 'foreign-cluster': {
      const verdict = event.yields ? ', and yields' : ''
      return `meets cluster ${event.cluster.id.slice(0, 4)}${verdict}`
    }
    case 'refused':
      return `is refused: boot ${event.boot} is remembered`
    case 'cluster':
      return `belongs to cluster ${event.cluster.id.slice(0, 4)}`
    case 'joined':
      return 'has joined'
    case 'no-seeds':
      return 'has no seeds but itself'
    case 'departed':
      return 'has departed'
  }
}

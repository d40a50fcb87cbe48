// The ways from one machine to another, each direction on its own: how long things take, what is lost, and whether anything
// passes at all. A cut between two that a third still reaches, or in one direction only, is nothing but a choice of links.

import { assert } from '../../base/assert.ts'
import type { Prng } from '../../base/prng.ts'
import type { SimClock } from './clock.ts'

export interface LinkConditions {
  /** Nothing passes. */
  readonly cut: boolean
  /** Drawn evenly between the two. */
  readonly latencyMs: readonly [least: number, greatest: number]
  /** The share of packets and chunks that take up to `stragglerMs` more; packets are overtaken meanwhile. */
  readonly stragglers: number
  readonly stragglerMs: number
  /** What is sent waits for what was sent before it. */
  readonly bytesPerMs: number
  /** Chances, 0 to 1, per packet. What a connection loses it sends again, later. */
  readonly packetLoss: number
  readonly packetDoubling: number
}

const CHUNK_BYTES_MAX = 64 * 1024
const CHUNK_BYTES_LEAST = 1500
/** On a slow link no chunk takes longer than this, unless it is as small as can be. */
const CHUNK_MS_MAX = 10
/** A packet that would wait longer than this for its turn on a slow link is dropped. */
const PACKET_WAIT_MS_MAX = 500

export class Machine {
  readonly host: string
  /** Off, a machine neither sends nor answers. */
  on = true

  constructor(host: string) {
    this.host = host
  }
}

export class Link {
  conditions: LinkConditions
  private readonly from: Machine
  private readonly to: Machine
  private readonly chances: Chances
  private readonly clock: SimClock
  private freeAt = 0
  private fuseBytes: number | undefined

  constructor(from: Machine, to: Machine, conditions: LinkConditions, world: LinkWorld) {
    this.from = from
    this.to = to
    this.conditions = conditions
    this.chances = world.chances
    this.clock = world.clock
  }

  get passes(): boolean {
    return !this.conditions.cut && this.from.on && this.to.on
  }

  latency(): number {
    const { latencyMs, stragglers, stragglerMs } = this.conditions
    const [least, greatest] = latencyMs
    const { delay, trouble } = this.chances
    const ms = least + delay.float() * (greatest - least)
    if (stragglers === 0 || trouble.float() >= stragglers) return ms
    return ms + trouble.float() * stragglerMs
  }

  /** How long `bytes` that leave now are under way. */
  delay(bytes: number): number {
    const ms = this.latency()
    const { bytesPerMs } = this.conditions
    if (bytesPerMs === Number.POSITIVE_INFINITY) return ms
    this.freeAt = Math.max(this.freeAt, this.clock.monotonic()) + bytes / bytesPerMs
    return ms + this.freeAt - this.clock.monotonic()
  }

  /** What a connection may send at a time. */
  get chunkBytesMax(): number {
    const most = Math.max(CHUNK_BYTES_LEAST, this.conditions.bytesPerMs * CHUNK_MS_MAX)
    return Math.min(CHUNK_BYTES_MAX, Math.floor(most))
  }

  /** The queue of a slow link has no room for another packet. */
  get crowded(): boolean {
    return this.freeAt - this.clock.monotonic() > PACKET_WAIT_MS_MAX
  }

  /** Of a connection's bytes; packets draw for themselves. */
  losesChunk(): boolean {
    const { packetLoss } = this.conditions
    return packetLoss > 0 && this.chances.trouble.float() < packetLoss
  }

  /** The connection that carries the `bytes`-th byte from now on is reset behind it. */
  resetAfter(bytes: number): void {
    this.fuseBytes = bytes
  }

  /** So many bytes of a connection have come across: how many of them, when the connection ends with those. */
  burn(bytes: number): number | undefined {
    if (this.fuseBytes === undefined) return undefined
    if (bytes < this.fuseBytes) {
      this.fuseBytes -= bytes
      return undefined
    }
    const left = this.fuseBytes
    this.fuseBytes = undefined
    return left
  }

  /** What was planned and has not come yet will not come. */
  disarm(): void {
    this.fuseBytes = undefined
  }
}

/** Apart, so that a calm network draws the same delays whatever may go wrong elsewhere. */
export interface Chances {
  readonly delay: Prng
  readonly trouble: Prng
}

export interface LinkWorld {
  readonly clock: SimClock
  readonly chances: Chances
}

export class Links {
  private readonly world: LinkWorld
  private readonly calmly: LinkConditions
  private readonly machines = new Map<string, Machine>()
  private readonly links = new Map<string, Map<string, Link>>()

  constructor(world: LinkWorld, calmly: LinkConditions) {
    this.world = world
    this.calmly = calmly
  }

  machine(host: string): Machine {
    let machine = this.machines.get(host)
    if (machine === undefined) {
      machine = new Machine(host)
      this.machines.set(host, machine)
    }
    return machine
  }

  /** The same object each time. */
  between(from: string, to: string): Link {
    let ways = this.links.get(from)
    if (ways === undefined) {
      ways = new Map()
      this.links.set(from, ways)
    }
    let link = ways.get(to)
    if (link === undefined) {
      link = new Link(this.machine(from), this.machine(to), this.calmly, this.world)
      ways.set(to, link)
    }
    return link
  }

  change(from: string, to: string, conditions: Partial<LinkConditions>): void {
    assert(from !== to || conditions.cut !== true, `${from} always reaches itself`)
    const link = this.between(from, to)
    link.conditions = { ...link.conditions, ...conditions }
  }

  /** All as it was at first. */
  calm(): void {
    for (const link of this.all()) link.conditions = this.calmly
  }

  disarm(): void {
    for (const link of this.all()) link.disarm()
  }

  private *all(): Generator<Link> {
    for (const ways of this.links.values()) yield* ways.values()
  }
}

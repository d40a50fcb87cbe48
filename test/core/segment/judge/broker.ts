// A broker's machine: its disk and its clock stay, processes come and go.

import type { FenceAnswer, InspectAnswer } from '../../../../src/core/segment/types.ts'
import type { NodeId } from '../../../../src/model/ids.ts'
import { name } from '../../raft/story.ts'
import { Disk } from './disk.ts'
import { Process } from './process.ts'
import type { World } from './world.ts'

export class Broker {
  readonly id: NodeId
  readonly name: string
  readonly world: World
  readonly disk: Disk
  process: Process | undefined
  boot = 0
  /** As others know it. */
  knownBoot: number | undefined
  private starting = false
  /** How far it has the shard's log. */
  applied = 0
  draining = false
  /** Stopped as by SIGSTOP: nothing comes in, and nothing is done. */
  pausedUntil = 0
  downSince = 0
  /** Others hold it dead, rightly or not. */
  suspectedUntil = 0
  private readonly rate: number
  private readonly clockStart: number

  constructor(world: World, id: NodeId) {
    this.world = world
    this.id = id
    this.name = name(id)
    this.disk = new Disk(world, () => this.pausedMs)
    const spread = world.profile.clockSpread
    this.rate = 1 + (world.chance.below(2) === 0 ? spread : -spread)
    this.clockStart = world.chance.below(1_000_000)
  }

  get now(): number {
    return this.clockStart + this.world.clock.monotonic() * this.rate
  }

  get paused(): boolean {
    return this.pausedMs > 0
  }

  /** How long it still stands still. */
  get pausedMs(): number {
    return Math.max(0, this.pausedUntil - this.world.clock.monotonic())
  }

  start(): void {
    if (this.process !== undefined || this.disk.lost || this.starting) return
    const { world, disk } = this
    const boot = ++this.boot
    this.starting = true
    disk.reads()
    // It says nothing before what recovery read is durable.
    const ms = boot === 1 ? 0 : 1 + world.syncMs(disk)
    const isCurrent = (): boolean => this.starting && boot === this.boot
    world.later(ms, () => {
      if (isCurrent()) this.runs(boot)
    })
    world.later(ms, () => {
      if (boot === this.boot) disk.recovered()
    })
  }

  private runs(boot: number): void {
    const { world, id } = this
    this.starting = false
    for (const [number, { items }] of this.disk.segments) {
      world.truth.stored(id, number, items.length)
    }
    this.process = new Process(this, boot)
    if (boot > 1) world.say(`${this.name} starts, boot ${boot}`)
    this.process.begins()
    world.net.linksOf(id)
    const lagMs = world.calm ? 0 : world.chance.float() * 500
    world.later(lagMs, () => {
      this.knownBoot = Math.max(this.knownBoot ?? 0, boot)
    })
  }

  kill(): void {
    const { world } = this
    // A start that is still recovering comes to nothing: a later one does that again.
    if (this.starting) this.boot++
    this.starting = false
    this.disk.crash()
    if (this.process === undefined) return
    this.process = undefined
    this.pausedUntil = 0
    this.downSince = world.clock.monotonic()
    world.net.linksOf(this.id)
  }

  // ---- what a coordinator asks

  fence(process: Process, number: number, answer: (answer: FenceAnswer) => void): void {
    const leading = process.leading.get(number)
    if (leading !== undefined) leading.fence(answer)
    else process.following.get(number)?.fence(answer)
  }

  inspect(process: Process, number: number): InspectAnswer | undefined {
    const segment = process.segmentOf(number)
    const kept = this.disk.segments.get(number)
    if (segment?.endEntry === undefined) return undefined
    if (kept === undefined) return { kind: 'part', end: 0 }
    if (kept.unsure !== undefined) return { kind: 'damaged', why: kept.unsure }
    if (kept.items.length < segment.endEntry) return { kind: 'part', end: kept.items.length }
    const digest = kept.items.map(({ partition, sequence }) => `${partition}:${sequence}`).join()
    return { kind: 'whole', digest: `d${digest}` }
  }
}

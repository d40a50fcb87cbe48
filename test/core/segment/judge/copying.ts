// Sealed segments are made whole from what other brokers have: their replicas, and the tails that the successor's replicas keep.

import type { Item } from './disk.ts'
import type { Process } from './process.ts'

const EVERY_MS = 200

interface Part {
  readonly from: number
  readonly items: readonly Item[]
}

export class Copying {
  private readonly process: Process
  private readonly busy = new Set<number>()
  private nextMs = 0

  constructor(process: Process) {
    this.process = process
  }

  tick(): void {
    const { process } = this
    if (process.now < this.nextMs) return
    this.nextMs = process.now + EVERY_MS
    const segments = process.world.register.segments(process.applied)
    for (const { segment: number, endEntry, replicas } of segments) {
      if (endEntry === undefined || !replicas.includes(process.id)) continue
      if (!this.busy.has(number) && this.lacks(number, endEntry)) this.ask(number, endEntry)
    }
  }

  private lacks(number: number, endEntry: number): boolean {
    const { disk } = this.process.broker
    const kept = disk.segment(number)
    kept.sealedAt = endEntry
    if (!disk.isQuiet(number)) return false
    return kept.unsure !== undefined || kept.items.length < endEntry
  }

  private ask(number: number, endEntry: number): void {
    const { process } = this
    const { world } = process
    const others = world.brokers.filter(({ id }) => id !== process.id)
    const other = others[world.chance.below(others.length)]
    if (other === undefined) return
    world.net.stream(process, other.id, `fetch segment ${number}`, (to) => {
      const part = to.copying.part(number, endEntry)
      if (part === undefined) return
      world.net.stream(to, process.id, `fetched segment ${number}`, (back) => {
        if (back === process) this.take(number, endEntry, part)
      })
    })
  }

  /** What it may hand on: all of it, or a tail that it keeps. */
  part(number: number, endEntry: number): Part | undefined {
    const { process } = this
    const kept = process.broker.disk.segments.get(number)
    if (kept !== undefined && kept.unsure === undefined && kept.items.length >= endEntry) {
      return { from: 0, items: kept.items.slice(0, endEntry) }
    }
    const token = process.segmentOf(number + 1)?.token
    const staged = token === undefined ? undefined : process.stagedUnder(token)
    return staged === undefined ? undefined : { from: staged.tailFrom, items: staged.tail }
  }

  private take(number: number, endEntry: number, { from, items }: Part): void {
    const { process, busy } = this
    const { disk } = process.broker
    if (busy.has(number) || !this.lacks(number, endEntry)) return
    const kept = disk.segment(number)
    if (kept.unsure !== undefined) {
      if (from > 0) return
      kept.items.length = 0
      kept.unsure = undefined
    }
    const have = kept.items.length
    const missing = items.slice(have - from)
    if (from > have || missing.length === 0) return
    busy.add(number)
    for (const [i, item] of missing.entries()) {
      process.world.truth.copies(process, number, have + i, item)
      disk.write({ kind: 'entry', segment: number, item }, () => {
        process.world.truth.stored(process.id, number, have + i + 1)
        if (i === missing.length - 1) busy.delete(number)
      })
    }
  }
}

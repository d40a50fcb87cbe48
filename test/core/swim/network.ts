// Packets and syncs between the members of a judged cluster: lost, doubled, delayed, overtaken, and cut off in each direction.

import type { Prng } from '../../../src/base/prng.ts'

export class Network {
  lossShare = 0
  /** It hears less than the others. */
  deaf: { readonly machine: number; readonly lossShare: number } | undefined
  /** Of packets, so many take long. */
  slowShare = 0.02
  private readonly cuts = new Set<string>()
  private readonly chance: Prng

  constructor(chance: Prng) {
    this.chance = chance
  }

  /** When the copies of a packet arrive, in ms from now. */
  packet(from: number, to: number): readonly number[] {
    if (this.isCut(from, to)) return []
    if (this.deaf?.machine === to && this.chance.float() < this.deaf.lossShare) return []
    if (this.lossShare > 0 && this.chance.float() < this.lossShare) return []
    const copies = this.chance.below(100) === 0 ? 2 : 1
    return Array.from({ length: copies }, () => this.delay())
  }

  /** Streams need both directions. */
  carries(from: number, to: number): boolean {
    return !this.isCut(from, to) && !this.isCut(to, from)
  }

  delay(): number {
    const slow = this.chance.float() < this.slowShare
    return 0.2 + this.chance.float() * (slow ? 250 : 5)
  }

  cut(from: number, to: number): void {
    this.cuts.add(`${from}>${to}`)
  }

  cutBoth(a: number, b: number): void {
    this.cut(a, b)
    this.cut(b, a)
  }

  mend(): void {
    this.cuts.clear()
  }

  private isCut(from: number, to: number): boolean {
    return this.cuts.has(`${from}>${to}`)
  }
}

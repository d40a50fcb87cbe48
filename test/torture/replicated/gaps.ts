// The longest time in which a topic acknowledged nothing, since it was asked last.

interface Gap {
  readonly fromMs: number
  readonly toMs: number
}

export class Gaps {
  private readonly last = new Map<string, number>()
  private longest: Gap = { fromMs: 0, toMs: 0 }

  acknowledged(topic: string): void {
    const now = performance.now()
    this.note(this.last.get(topic) ?? now, now)
    this.last.set(topic, now)
  }

  /** Topics that have said nothing since `begin` have a gap that lasts. */
  begin(topics: readonly string[]): void {
    const now = performance.now()
    for (const topic of topics) this.last.set(topic, now)
    this.longest = { fromMs: now, toMs: now }
  }

  end(): Gap {
    const now = performance.now()
    for (const fromMs of this.last.values()) this.note(fromMs, now)
    return this.longest
  }

  /** Every one of them has acknowledged something since then. */
  allSince(topics: readonly string[], ms: number): boolean {
    return topics.every((topic) => (this.last.get(topic) ?? 0) > ms)
  }

  private note(fromMs: number, toMs: number): void {
    if (toMs - fromMs > this.longest.toMs - this.longest.fromMs) this.longest = { fromMs, toMs }
  }
}

// How long to wait before trying again.

interface Chance {
  /** In [0, 1). */
  float(): number
}

/** Pauses that double from `leastMs` to `mostMs`, each drawn from its upper half so that many who fail together do not march in step. */
export class Backoff {
  private failures = 0
  private readonly random: Chance
  private readonly leastMs: number
  private readonly mostMs: number

  constructor(random: Chance, leastMs: number, mostMs: number) {
    this.random = random
    this.leastMs = leastMs
    this.mostMs = mostMs
  }

  next(): number {
    const whole = Math.min(this.mostMs, this.leastMs * 2 ** Math.min(this.failures++, 30))
    return whole * (0.5 + this.random.float() / 2)
  }

  reset(): void {
    this.failures = 0
  }
}

// How well this member does itself (Lifeguard's local health multiplier). Whoever misses acks and nacks, or has to refute
// that it is dead, is slow or cut off itself: it then waits longer before it thinks ill of others.
//
//   0 = well ──missed ack or nack, refutation: +1──> ... 8        every answered probe: -1

const WORST = 8

export class Health {
  private score = 0

  /** What time-outs and periods are multiplied by. */
  get factor(): number {
    return 1 + this.score
  }

  better(): void {
    this.score = Math.max(0, this.score - 1)
  }

  worse(by: number = 1): void {
    this.score = Math.min(WORST, this.score + by)
  }
}

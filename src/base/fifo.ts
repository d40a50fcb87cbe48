// A bounded first-in-first-out queue in a ring: no shifting, no allocation per element. The bound is part of
// the contract: `push` says no, and the caller decides what that means.

export class Fifo<T> {
  private ring: (T | undefined)[]
  private head = 0
  private count = 0
  readonly limit: number

  constructor(limit: number) {
    this.limit = limit
    this.ring = Array.from({ length: Math.min(16, Math.max(1, limit)) })
  }

  get size(): number {
    return this.count
  }

  /** False when the queue is full; then nothing was added. */
  push(value: T): boolean {
    if (this.count === this.limit) return false
    if (this.count === this.ring.length) this.grow()
    this.ring[(this.head + this.count) % this.ring.length] = value
    this.count++
    return true
  }

  peek(): T | undefined {
    return this.count === 0 ? undefined : this.ring[this.head]
  }

  shift(): T | undefined {
    if (this.count === 0) return undefined
    const value = this.ring[this.head]
    this.ring[this.head] = undefined
    this.head = (this.head + 1) % this.ring.length
    this.count--
    return value
  }

  private grow(): void {
    const larger = Array.from<T | undefined>({ length: Math.min(this.limit, 2 * this.ring.length) })
    for (let i = 0; i < this.count; i++) larger[i] = this.ring[(this.head + i) % this.ring.length]
    this.ring = larger
    this.head = 0
  }
}

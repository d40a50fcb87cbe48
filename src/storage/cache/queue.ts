// A list that grows at its end and shrinks at both: the shape of everything that is cached. Plain arrays with a moving
// head; the space in front is given back when it is more than what is left.

const COMPACT_FROM = 64

export class Queue<T> {
  private items: (T | undefined)[] = []
  private head = 0

  get length(): number {
    return this.items.length - this.head
  }

  push(item: T): void {
    this.items.push(item)
  }

  /** `index` counts from the oldest. */
  at(index: number): T | undefined {
    return this.items[this.head + index]
  }

  shift(): T | undefined {
    if (this.head === this.items.length) return undefined
    const item = this.items[this.head]
    this.items[this.head++] = undefined
    if (this.head >= COMPACT_FROM && this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head)
      this.head = 0
    }
    return item
  }

  pop(): T | undefined {
    return this.head === this.items.length ? undefined : this.items.pop()
  }

  slice(from: number, end: number): T[] {
    return this.items.slice(this.head + from, this.head + end) as T[]
  }
}

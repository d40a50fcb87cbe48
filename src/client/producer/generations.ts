// How flush() knows when it is done. Every accepted record counts in the generation that is current; flush() closes
// that one and waits until it and all before it have none left. A count, not a list: flushing costs nothing per record.

export interface Generation {
  /** Accepted and not yet settled. */
  live: number
}

interface Waiter {
  readonly upTo: number
  readonly resolve: () => void
}

export class Generations {
  current: Generation = { live: 0 }
  /** Closed ones that still have records, oldest first, and the current one last. */
  private open: Generation[] = [this.current]
  private first = 0
  private waiters: Waiter[] = []

  /** Records have settled. */
  settle(generation: Generation, count: number): void {
    generation.live -= count
    if (generation.live === 0 && this.waiters.length > 0) this.wake()
  }

  /** Resolves when everything accepted so far has settled. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.waiters.push({ upTo: this.first + this.open.length, resolve })
      this.current = { live: 0 }
      this.open.push(this.current)
      this.wake()
    })
  }

  private wake(): void {
    while (this.open.length > 1 && this.open[0]?.live === 0) {
      this.open.shift()
      this.first++
    }
    while (this.waiters.length > 0 && (this.waiters[0] as Waiter).upTo <= this.first) {
      this.waiters.shift()?.resolve()
    }
  }
}

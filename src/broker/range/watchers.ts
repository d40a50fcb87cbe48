// Who waits for which partition of one range. A group commit marks the partitions it touched and wakes each of them
// once, whatever the number of its entries. With nobody waiting, the cost per entry is one comparison.

import type { Watcher } from '../sinks.ts'

export class Watchers {
  private readonly lists = new Map<number, Watcher[]>()
  private touched: number[] = []

  get none(): boolean {
    return this.lists.size === 0
  }

  add(partition: number, watcher: Watcher): void {
    const list = this.lists.get(partition)
    if (list === undefined) this.lists.set(partition, [watcher])
    else list.push(watcher)
  }

  remove(partition: number, watcher: Watcher): void {
    const list = this.lists.get(partition)
    if (list === undefined) return
    const at = list.indexOf(watcher)
    if (at >= 0) list.splice(at, 1)
    if (list.length === 0) this.lists.delete(partition)
  }

  /** The partition has something new; its watchers wake with the next `wakeTouched`. */
  touch(partition: number): void {
    if (this.touched[this.touched.length - 1] !== partition) this.touched.push(partition)
  }

  wakeTouched(): void {
    if (this.touched.length === 0) return
    const partitions = this.touched
    this.touched = []
    for (const partition of partitions) this.wake(partition)
  }

  wakeAll(): void {
    for (const partition of Array.from(this.lists.keys())) this.wake(partition)
  }

  private wake(partition: number): void {
    const list = this.lists.get(partition)
    if (list === undefined) return
    // Taken out first: a watcher may register again while it wakes.
    this.lists.delete(partition)
    for (const watcher of list) watcher.wake()
  }
}

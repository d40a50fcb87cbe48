// So much of one kind of work at a time; the rest waits for its turn, first come first served. For work that would take by its
// mere number what others need, too: the few threads that do what is asked of the disk.

type Urgency = 'urgent' | 'calm'

export class Lanes {
  private readonly most: number
  private running = 0
  private readonly waiting: Readonly<Record<Urgency, (() => void)[]>> = { urgent: [], calm: [] }

  constructor(most: number) {
    this.most = most
  }

  /** What is calm goes when nothing urgent waits. Whoever calls bounds how much may come. */
  async run<T>(work: () => Promise<T>, how: Urgency = 'urgent'): Promise<T> {
    if (this.running < this.most) this.running++
    else await new Promise<void>((resolve) => this.waiting[how].push(resolve))
    try {
      return await work()
    } finally {
      const next = this.waiting.urgent.shift() ?? this.waiting.calm.shift()
      // Its place is handed on, so that nobody comes in between.
      if (next === undefined) this.running--
      else next()
    }
  }
}

// Where the world enters a process: every timer, byte, packet and answer of the disk goes through its gate, so that one
// place can stop the process and lose nothing.
//
//   open ──hold──> held ──release──> draining ──empty──> open         (SIGSTOP, SIGCONT)
//     any ──close──> closed: nothing enters any more                   (the process is gone)
//
// What comes while it is held waits, in the order in which it came, and enters one event after another when it is
// released; what comes meanwhile waits behind. Time passes all the while, as it does for a stopped process: the first thing
// it sees may be that an hour is over. A real event loop may look at its timers before it reads its sockets, so the holder
// says which is first.

import type { SimClock } from './clock.ts'

type Kind = 'timer' | 'event'

interface Waiting {
  readonly kind: Kind
  readonly run: () => void
}

export class Gate {
  private readonly clock: SimClock
  private state: 'open' | 'held' | 'draining' | 'closed' = 'open'
  private waiting: Waiting[] = []

  constructor(clock: SimClock) {
    this.clock = clock
  }

  get closed(): boolean {
    return this.state === 'closed'
  }

  /** What passes now has to wait. */
  get held(): boolean {
    return this.state === 'held' || this.state === 'draining'
  }

  pass(run: () => void, kind: Kind = 'event'): void {
    if (this.state === 'open') run()
    else if (this.state !== 'closed') this.waiting.push({ kind, run })
  }

  hold(): void {
    if (this.state !== 'closed') this.state = 'held'
  }

  release({ timersFirst = false }: { readonly timersFirst?: boolean } = {}): void {
    if (this.state !== 'held') return
    this.state = 'draining'
    if (timersFirst) {
      const timers = this.waiting.filter(({ kind }) => kind === 'timer')
      this.waiting = [...timers, ...this.waiting.filter(({ kind }) => kind !== 'timer')]
    }
    this.drain()
  }

  close(): void {
    this.state = 'closed'
    this.waiting = []
  }

  private drain(): void {
    this.clock.nextTurn(() => {
      if (this.state !== 'draining') return
      const first = this.waiting.shift()
      if (first === undefined) {
        this.state = 'open'
        return
      }
      this.drain()
      first.run()
    })
  }
}

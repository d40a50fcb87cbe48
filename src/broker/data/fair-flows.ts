// Whose turn it is to send: deficit round robin by bytes (Shreedhar and Varghese, 1995), so that a flow with large entries gets
// no more than one with small ones.
//
//   plain  ──> a ──> b ──> c ──┐     each turn gives a flow QUANTUM bytes of credit. What an entry was larger than its credit
//            ^─────────────────┘     is owed, and turns are passed over until it is paid; some of what was left over is kept
//   bulk   ──> d ──> e ──┐
//            ^───────────┘           goes when nothing plain is ready; else for each three plain bytes one
//
// Bulk is what nobody waits for: copies for repair, staged state. So it never delays what producers wait for by more than a
// third, and never starves either.

import { assert } from '../../base/assert.ts'
import { Fifo } from '../../base/fifo.ts'

const QUANTUM_BYTES: number = 64 * 1024
/** Plain bytes for each bulk byte, while both are ready. */
const PLAIN_PER_BULK = 3
const FLOWS_MAX = 1_000_000

export interface Source {
  readonly bulk: boolean
  fill(budgetBytes: number): readonly Uint8Array[]
}

/** A flow among the others. */
export interface Turn {
  /** There is something to send. */
  ready(): void
  close(): void
}

interface Waiting {
  readonly source: Source
  credit: number
  queued: boolean
  closed: boolean
}

export class FairFlows {
  private readonly plain = new Fifo<Waiting>(FLOWS_MAX)
  private readonly bulk = new Fifo<Waiting>(FLOWS_MAX)
  /** Bytes that bulk may send although plain ones are ready. */
  private bulkCredit = 0

  add(source: Source): Turn {
    const waiting: Waiting = { source, credit: 0, queued: false, closed: false }
    return {
      ready: () => this.queue(waiting),
      close: () => {
        waiting.closed = true
      },
    }
  }

  private queue(waiting: Waiting): void {
    if (waiting.queued || waiting.closed) return
    waiting.queued = true
    const ring = waiting.source.bulk ? this.bulk : this.plain
    assert(ring.push(waiting), `there are fewer than ${FLOWS_MAX} flows`)
  }

  /** What goes next; nothing when no flow has anything. */
  next(): readonly Uint8Array[] {
    for (;;) {
      const { plain, bulk } = this
      const ring = plain.size === 0 || (bulk.size > 0 && this.bulkCredit > 0) ? bulk : plain
      const waiting = ring.shift()
      if (waiting === undefined) return []
      waiting.queued = false
      if (waiting.closed) continue
      // Alone it owes nobody anything.
      waiting.credit = ring.size === 0 ? QUANTUM_BYTES : waiting.credit + QUANTUM_BYTES
      if (waiting.credit <= 0) {
        this.queue(waiting)
        continue
      }
      const buffers = waiting.source.fill(waiting.credit)
      const bytes = sizeOf(buffers)
      waiting.credit = bytes === 0 ? 0 : Math.min(waiting.credit - bytes, QUANTUM_BYTES)
      if (bytes === 0) continue
      this.queue(waiting)
      this.count(waiting.source, bytes)
      return buffers
    }
  }

  private count({ bulk }: Source, bytes: number): void {
    if (!bulk) this.bulkCredit = Math.min(this.bulkCredit + bytes / PLAIN_PER_BULK, QUANTUM_BYTES)
    else if (this.plain.size > 0) this.bulkCredit -= bytes
  }
}

export function sizeOf(buffers: readonly Uint8Array[]): number {
  let bytes = 0
  for (const buffer of buffers) bytes += buffer.length
  return bytes
}

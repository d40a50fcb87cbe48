// Where the other brokers are is kept in the data directory for the next start. What found a full
// disk is written later: nothing else need change before that start.

import { type Address, sameAddress } from '../base/address.ts'
import type { Neighbour } from '../broker/options.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Log } from '../ports/log.ts'
import type { DataDir } from '../storage/datadir/data-dir.ts'
import { isFull } from './disk-failure.ts'

const AGAIN_MS = 60_000

export interface PeersKeptOptions {
  readonly clock: Clock
  readonly log: Log
  readonly dataDir: Pick<DataDir, 'peers' | 'keepPeers'>
  /** All others that are known. */
  readonly known: () => readonly Pick<Neighbour, 'cluster' | 'state'>[]
  /** The disk has, and not for want of room. */
  onFailed(error: Error): void
}

export class PeersKept {
  private readonly options: PeersKeptOptions
  /** Of whom nothing is heard in this start may have lost its disk, and found a cluster of its own when it comes back. */
  private unheard: readonly Address[]
  private again: Timer | undefined
  private stopped = false

  constructor(options: PeersKeptOptions) {
    this.options = options
    this.unheard = options.dataDir.peers
  }

  /** To be called when others are known than before. */
  changed(): void {
    const { dataDir } = this.options
    const known = this.options.known()
    this.unheard = this.unheard.filter(
      (peer) => !known.some(({ cluster }) => sameAddress(cluster, peer)),
    )
    const there = known.filter(({ state }) => state !== 'left').map(({ cluster }) => cluster)
    dataDir.keepPeers([...there, ...this.unheard]).catch((error: unknown) => this.failed(error))
  }

  stop(): void {
    this.stopped = true
    this.again?.cancel()
  }

  private failed(error: unknown): void {
    if (!isFull(error)) return this.options.onFailed(error as Error)
    if (this.stopped || this.again !== undefined) return
    const { clock, log } = this.options
    const text =
      'where the other brokers are could not be written down yet: after a restart, seeds must tell'
    log.warn(text, { err: error })
    this.again = clock.after(AGAIN_MS, () => {
      this.again = undefined
      this.changed()
    })
  }
}

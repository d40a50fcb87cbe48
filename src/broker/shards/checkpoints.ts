// Keeps the journal short: a shard whose log has grown as long as its last snapshot is compacted and stored, and when the
// journal holds more files than it should, so is the shard that keeps the oldest, one after another.

import { encodeSnapshot } from '../../core/metadata/snapshot.ts'
import type { Clock } from '../../ports/clock.ts'
import { foundNoRoom } from '../../ports/disk.ts'
import type { Log } from '../../ports/log.ts'
import type { Journal } from '../../storage/journal/journal.ts'
import type { ShardCopy } from './copy.ts'
import type { Replica } from './replica.ts'

/** The journal is to hold no more than so many files for long. */
const FILES_MAX = 4
/** A disk that had no room is not tried again for so long: each try writes to the journal what no snapshot covers. */
const FULL_PAUSE_MS = 5000

export interface CheckpointsHost {
  readonly journal: Journal
  readonly clock: Clock
  readonly log: Log
  /** A shard's records take at least so much between snapshots. */
  readonly snapshotBytesLeast: number
  replica(shard: number): Replica | undefined
  copyOf(shard: number): ShardCopy
  failed(error: Error): void
}

export class Checkpoints {
  private readonly host: CheckpointsHost
  /** How many bytes each shard's records may take until its next snapshot: as many as the last one had. */
  private readonly lastBytes = new Map<number, number>()
  private running = false
  /** The last one found no room: when the next may be tried. */
  private fullUntilMs: number | undefined

  constructor(host: CheckpointsHost) {
    this.host = host
  }

  /** Entries of the shard were applied. */
  applied(shard: number): void {
    const { journal, snapshotBytesLeast } = this.host
    const enough = Math.max(snapshotBytesLeast, this.lastBytes.get(shard) ?? 0)
    if (journal.bytesSinceSnapshot(shard) >= enough) this.start(shard)
  }

  tick(): void {
    const { journal } = this.host
    if (journal.filesInUse <= FILES_MAX) return
    const oldest = journal.holdsBack
    if (oldest !== undefined) this.start(oldest)
  }

  private start(shard: number): void {
    if (this.running || this.host.clock.monotonic() < (this.fullUntilMs ?? 0)) return
    const replica = this.host.replica(shard)
    if (replica === undefined) return
    this.running = true
    void this.checkpoint(replica).finally(() => {
      this.running = false
    })
  }

  private async checkpoint(replica: Replica): Promise<void> {
    const { shard, raft } = replica
    const copy = this.host.copyOf(shard)
    try {
      // A copy that a feed has brought further than the log here is of no use to it.
      if (copy.appliedIndex === raft.appliedIndex) {
        raft.compact(copy.appliedIndex, encodeSnapshot(copy.state))
      }
      this.lastBytes.set(shard, await replica.checkpoint())
      this.fullUntilMs = undefined
    } catch (error) {
      if (!foundNoRoom(error)) {
        this.host.failed(error as Error)
        return
      }
      if (this.fullUntilMs === undefined) {
        const message = 'No disk space for a metadata snapshot; the journal grows meanwhile'
        this.host.log.warn(message, { shard, err: error })
      }
      this.fullUntilMs = this.host.clock.monotonic() + FULL_PAUSE_MS
    }
  }
}

// This broker as a member of one shard's group: the Raft member, and what of it is in the journal.
//
//   raft.take() ──> write(effects): records into the journal ──sync──> persisted(effects)
//
// Between the two it is busy: the next effects are taken when those before are durable. A snapshot that the leader sent
// takes the place of all records, so its file is written first. When the disk has no room for it the member waits until there
// is: nothing that came later could be promised before.
//
// A checkpoint keeps the journal short. It may run beside everything else, since the records stay until the snapshot's file
// is there; entries that no snapshot can cover yet, because they have not committed, are written to the journal again.

import { EMPTY } from '../../base/bytes.ts'
import { Raft } from '../../core/raft/raft.ts'
import type { Effects, RaftOptions } from '../../core/raft/types.ts'
import type { Entry, Members, Snapshot } from '../../model/raft.ts'
import type { Clock } from '../../ports/clock.ts'
import { foundNoRoom } from '../../ports/disk.ts'
import type { Log } from '../../ports/log.ts'
import type { Journal } from '../../storage/journal/journal.ts'
import {
  encodeShardSnapshot,
  entryRecord,
  foundedRecord,
  hardStateRecord,
  restoreShard,
} from './records.ts'

const NOTHING = { snapshot: undefined, records: [] }
const ROOM_POLL_MS = 1000

export interface ReplicaHost {
  readonly journal: Journal
  readonly clock: Clock
  readonly log: Log
}

export class Replica {
  readonly shard: number
  readonly raft: Raft
  /** Its effects are on their way to the disk. */
  busy = false
  /** For room on the disk: until then it is deaf and mute. */
  waits = false
  private readonly host: ReplicaHost
  private readonly journal: Journal
  private closing = false
  private foundedBy: Members | undefined
  /** The file is written by one at a time: an older state must not take the place of a newer one. */
  private saving: Promise<unknown> = Promise.resolve()

  /** `founder`: who founds the group, if nothing of it is here yet. Throws DAMAGED. */
  constructor(
    shard: number,
    host: ReplicaHost,
    options: RaftOptions,
    founder: Members | undefined,
    now: number,
  ) {
    this.shard = shard
    this.host = host
    this.journal = host.journal
    const found = host.journal.recovered.get(shard)
    const restored = restoreShard(shard, found ?? NOTHING)
    if (found === undefined) this.foundedBy = founder
    const members = this.foundedBy ?? restored.members
    this.raft = new Raft(options, { ...restored, members }, now)
  }

  /** False: nothing is to be synced. Rejections of the promise are the disk's. */
  write(effects: Effects): Promise<void> | boolean {
    const { installed, hardState, entries } = effects
    if (installed) return this.install(effects)
    if (hardState === undefined && entries.length === 0) return false
    if (this.foundedBy !== undefined) {
      this.journal.append(this.shard, foundedRecord(this.foundedBy))
      this.foundedBy = undefined
    }
    if (hardState !== undefined) this.journal.append(this.shard, hardStateRecord(hardState))
    this.append(entries)
    return true
  }

  private append(entries: readonly Entry[]): void {
    for (const entry of entries) this.journal.append(this.shard, entryRecord(entry))
  }

  private install({ entries }: Effects): Promise<void> {
    const { journal } = this
    return this.alone(async () => {
      while (!(await this.savedIfRoom())) await this.pause()
      this.append(entries)
      await journal.sync()
    })
  }

  private async savedIfRoom(): Promise<boolean> {
    try {
      await this.save(this.journal.nextPosition)
      this.waits = false
      return true
    } catch (error) {
      if (!foundNoRoom(error) || this.closing) throw error
      const { shard, waits } = this
      const message =
        'No disk space for the snapshot of a metadata shard; it is taken up when there is'
      if (!waits) this.host.log.warn(message, { shard, err: error })
      this.waits = true
      return false
    }
  }

  private pause(): Promise<void> {
    return new Promise((resolve) => {
      this.host.clock.after(ROOM_POLL_MS, resolve)
    })
  }

  /**
   * Stores the newest snapshot, so that the journal need not keep what it covers; resolves with its bytes. Rejects with a
   * DiskError when the disk is full: then nothing has changed.
   */
  checkpoint(): Promise<number> {
    const { raft, journal } = this
    return this.alone(async () => {
      const { lastIndex, snapshot } = raft.log
      const rest = raft.log.slice((snapshot?.index ?? 0) + 1, lastIndex, Number.POSITIVE_INFINITY)
      const position = journal.nextPosition
      // Of a new term they may be, and come before what is taken next.
      if (rest.length > 0) journal.append(this.shard, hardStateRecord(raft.hardState))
      this.append(rest)
      return this.save(position, journal.sync())
    })
  }

  /** No file of it is being written any more when it resolves. */
  async close(): Promise<void> {
    this.closing = true
    await this.saving
  }

  private alone<T>(save: () => Promise<T>): Promise<T> {
    const saved = this.saving.then(save)
    this.saving = saved.catch(() => undefined)
    return saved
  }

  /** What is known now, durable or not yet, is in the file; everything later stands at `position` or behind it. */
  private async save(position: number, after?: Promise<void>): Promise<number> {
    const { raft, journal, shard } = this
    const snapshot = raft.log.snapshot ?? this.founding()
    const content = encodeShardSnapshot(raft.hardState, snapshot)
    await after
    await journal.saveSnapshot(shard, content, position)
    return content.length
  }

  /** The state of a group in which nothing has happened. */
  private founding(): Snapshot {
    return { index: 0, term: 0, members: this.raft.log.membersAt(0), data: EMPTY }
  }
}

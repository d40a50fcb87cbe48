// Waiting until this broker's copy of a shard holds all that anybody was answered before: the shard's leader names an index
// (core/raft: by its lease, or by a round that a quorum answers), the copy comes to it. Everybody who asks for a shard before
// the question is on its way shares it.

import type { EastGuardError } from '../../base/errors.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ShardLeader } from '../../wire/peer/types.ts'
import type { ShardCopy } from './copy.ts'
import { unavailable } from './proposals.ts'

const ASK_AGAIN_MS = 500
const RETRY_MS = 50

export interface ReadsHost {
  readonly clock: Clock
  readonly timeoutMs: number
  /** The number before the first. */
  readonly asked: number
  copyOf(shard: number): ShardCopy
  leaderOf(shard: number): ShardLeader | undefined
  anyone(): NodeId | undefined
  /** `answered` is called with what it says, at once or later. */
  ask(node: NodeId, shard: number, id: number): void
}

interface Read {
  readonly shard: number
  readonly deadlineMs: number
  readonly waiting: { resolve(): void; reject(error: EastGuardError): void }[]
  sent: boolean
  dueMs: number
  index: number | undefined
}

export class Reads {
  private readonly host: ReadsHost
  private readonly reads = new Map<number, Read>()
  /** By shard, those that are not on their way yet. */
  private readonly gathering = new Map<number, Read>()
  private last: number

  constructor(host: ReadsHost) {
    this.host = host
    this.last = host.asked
  }

  /** Rejects with METADATA_UNAVAILABLE when no leader says so in time. */
  fresh(shard: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.readOf(shard).waiting.push({ resolve, reject })
    })
  }

  private readOf(shard: number): Read {
    const gathering = this.gathering.get(shard)
    if (gathering !== undefined) return gathering
    const { clock, timeoutMs } = this.host
    const now = clock.monotonic()
    const read: Read = {
      shard,
      deadlineMs: now + timeoutMs / 2,
      waiting: [],
      sent: false,
      dueMs: now,
      index: undefined,
    }
    if (this.gathering.size === 0) clock.nextTurn(() => this.sendGathered())
    this.gathering.set(shard, read)
    return read
  }

  private sendGathered(): void {
    const gathered = [...this.gathering.values()]
    this.gathering.clear()
    for (const read of gathered) {
      const id = ++this.last
      this.reads.set(id, read)
      this.send(id, read)
    }
  }

  private send(id: number, read: Read): void {
    const { host } = this
    const leader = host.leaderOf(read.shard)
    // One that has not answered may be gone.
    const to = leader === undefined || read.sent ? host.anyone() : leader.node
    read.sent = to === leader?.node
    read.dueMs = host.clock.monotonic() + (read.sent ? ASK_AGAIN_MS : RETRY_MS)
    if (to !== undefined) host.ask(to, read.shard, id)
  }

  tick(): void {
    const now = this.host.clock.monotonic()
    for (const [id, read] of this.reads) {
      if (now >= read.deadlineMs) {
        this.reads.delete(id)
        const why = read.index === undefined ? 'no leader answers' : 'this broker lags behind'
        for (const one of read.waiting) one.reject(unavailable(read.shard, why))
      } else if (read.index === undefined && now >= read.dueMs) this.send(id, read)
    }
  }

  leaderChanged(shard: number): void {
    for (const [id, read] of this.reads) {
      if (read.shard !== shard || read.index !== undefined) continue
      read.sent = false
      this.send(id, read)
    }
  }

  /** Undefined: whoever was asked does not lead. */
  answered(id: number, index: number | undefined): void {
    const read = this.reads.get(id)
    if (read === undefined || read.index !== undefined) return
    if (index === undefined) {
      read.sent = false
      read.dueMs = Math.min(read.dueMs, this.host.clock.monotonic() + RETRY_MS)
      return
    }
    read.index = index
    this.settle(id, read)
  }

  advanced(copy: ShardCopy): void {
    for (const [id, read] of this.reads) if (read.shard === copy.shard) this.settle(id, read)
  }

  private settle(id: number, read: Read): void {
    if (read.index === undefined || this.host.copyOf(read.shard).appliedIndex < read.index) return
    this.reads.delete(id)
    for (const one of read.waiting) one.resolve()
  }

  close(error: EastGuardError): void {
    for (const reads of [this.reads, this.gathering]) {
      for (const { waiting } of reads.values()) for (const one of waiting) one.reject(error)
      reads.clear()
    }
  }
}

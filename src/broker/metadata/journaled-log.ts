// The metadata log of a broker that stands alone: a command is appended to the journal, synced, applied, and its
// proposer answered with its own result. Commands that arrive while a sync runs share the next one.
//
//   propose ──> journal.append ──> waiting ──sync──> apply in order ──> listeners ──> the proposer's result
//
// The log's index is the journal's position. After enough bytes the state is stored as a snapshot, so that journal and
// start-up time stay bounded; a snapshot is taken when the journal has grown by as much as the last one was long,
// which keeps the writing in proportion whatever the number of topics.

import { Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import { decodeCommand, encodeCommand } from '../../core/metadata/command-codec.ts'
import type { Command, CommandKind, Result, ResultOf } from '../../core/metadata/commands.ts'
import { apply, emptyState } from '../../core/metadata/machine.ts'
import { decodeSnapshot, encodeSnapshot } from '../../core/metadata/snapshot.ts'
import type { MetadataState } from '../../core/metadata/types.ts'
import { DiskError } from '../../ports/disk.ts'
import type { Log } from '../../ports/log.ts'
import type { Journal } from '../../storage/journal/journal.ts'
import type { MetadataListener, MetadataLog } from './types.ts'

/** A broker alone keeps all topics in one shard. */
const SHARD = 0
const SNAPSHOT_BYTES_LEAST = 4 * 1024 * 1024
/** Proposals that wait for the disk; more are refused. */
const WAITING_MAX = 10_000

export interface JournaledLogOptions {
  readonly journal: Journal
  readonly log: Log
  /** The disk failed: nothing more is durable. Called once. */
  onFailed(error: Error): void
  /** The journal grows by at least so much between snapshots. */
  readonly snapshotBytes?: number
}

interface Proposal {
  readonly command: Command
  readonly position: number
  resolve(result: Result): void
  reject(error: Error): void
}

/** Replays what the journal holds. Throws DAMAGED when that cannot be understood. */
export function openJournaledLog(options: JournaledLogOptions): MetadataLog {
  return new JournaledLog(options, stateOf(options.journal.recovered))
}

/** The state that a journal holds. Throws DAMAGED. */
export function stateOf(recovered: Journal['recovered']): MetadataState {
  const found = recovered.get(SHARD)
  try {
    const state = found?.snapshot === undefined ? emptyState() : decodeSnapshot(found.snapshot)
    for (const { position, bytes } of found?.records ?? []) {
      apply(state, decodeCommand(bytes), position)
    }
    return state
  } catch (error) {
    if (!(error instanceof Truncated)) throw error
    const message = `the metadata journal cannot be read: ${error.message}`
    throw new EastGuardError('DAMAGED', message, { cause: error })
  }
}

/** Commands that only take more: refused when the disk is full. The others free space, or keep what exists going. */
const GROWING: ReadonlySet<CommandKind> = new Set<CommandKind>(['CreateTopic', 'AddPartitions'])

class JournaledLog implements MetadataLog {
  readonly state: MetadataState
  private readonly journal: Journal
  private readonly log: Log
  private readonly onFailed: (error: Error) => void
  private readonly listeners = new Set<MetadataListener>()
  private readonly snapshotBytes: number
  private waiting: Proposal[] = []
  private draining: Promise<void> | undefined
  private snapshotting: Promise<void> | undefined
  /** The next snapshot is taken after so many bytes. */
  private nextSnapshotBytes: number
  private failure: EastGuardError | undefined
  private closed = false

  constructor(options: JournaledLogOptions, state: MetadataState) {
    this.journal = options.journal
    this.log = options.log
    this.onFailed = (error) => options.onFailed(error)
    this.snapshotBytes = options.snapshotBytes ?? SNAPSHOT_BYTES_LEAST
    this.nextSnapshotBytes = this.snapshotBytes
    this.state = state
  }

  async propose<C extends Command>(proposed: C): Promise<ResultOf<C['kind']>> {
    const bytes = encodeCommand(proposed)
    const refusal = this.refusal(proposed, bytes.length)
    if (refusal !== undefined) throw refusal
    // What is applied now is what a restart will read: a command that has no exact form must not reach the journal.
    const command = decodeCommand(bytes)
    return new Promise((resolve, reject) => {
      const position = this.journal.append(SHARD, bytes)
      // A command's result is of its own kind: apply answers each with its own.
      const settled = (result: Result): void => resolve(result as ResultOf<C['kind']>)
      this.waiting.push({ command, position, resolve: settled, reject })
      this.draining ??= this.drain()
    })
  }

  onChange(listener: MetadataListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.closed = true
    await this.draining
    await this.snapshotting
    await this.journal.close()
  }

  private refusal(command: Command, bytes: number): EastGuardError | undefined {
    if (this.failure !== undefined) return this.failure
    if (this.closed) return new EastGuardError('BROKER_STOPPED', 'the broker stops')
    if (this.waiting.length >= WAITING_MAX) {
      const message = `${WAITING_MAX} metadata changes wait for the disk already`
      return new EastGuardError('TOO_MANY_REQUESTS', message)
    }
    if (!GROWING.has(command.kind)) return undefined
    if (this.journal.hasRoom(bytes)) return undefined
    return new EastGuardError('STORAGE_FULL', 'there is no space for more metadata')
  }

  private async drain(): Promise<void> {
    try {
      while (this.waiting.length > 0) {
        const count = this.waiting.length
        await this.journal.sync()
        const synced = this.waiting.splice(0, count)
        for (const proposal of synced) this.settle(proposal)
        this.snapshotWhenDue()
      }
    } catch (error) {
      this.fail(error as Error)
    } finally {
      this.draining = undefined
    }
  }

  private settle(proposal: Proposal): void {
    const { result, changed } = apply(this.state, proposal.command, proposal.position)
    if (changed.length > 0) {
      for (const listener of this.listeners) listener(changed, proposal.position)
    }
    proposal.resolve(result)
  }

  private snapshotWhenDue(): void {
    if (this.snapshotting !== undefined) return
    if (this.journal.bytesSinceSnapshot(SHARD) < this.nextSnapshotBytes) return
    this.snapshotting = this.snapshot().finally(() => {
      this.snapshotting = undefined
    })
  }

  private async snapshot(): Promise<void> {
    const state = encodeSnapshot(this.state)
    const grown = this.journal.bytesSinceSnapshot(SHARD)
    try {
      await this.journal.saveSnapshot(SHARD, state, this.state.appliedIndex + 1)
      this.nextSnapshotBytes = Math.max(this.snapshotBytes, state.length)
    } catch (error) {
      if (!(error instanceof DiskError && error.fault === 'full')) return this.fail(error as Error)
      this.nextSnapshotBytes = 2 * grown
      this.log.warn('No disk space for a metadata snapshot; the journal grows meanwhile', {
        bytes: state.length,
        err: error,
      })
    }
  }

  private fail(cause: Error): void {
    if (this.failure !== undefined) return
    const message = `the metadata journal failed: ${cause.message}`
    const failure = new EastGuardError('DISK_FAILED', message, { cause })
    this.failure = failure
    const waiting = this.waiting
    this.waiting = []
    for (const proposal of waiting) proposal.reject(failure)
    this.onFailed(failure)
  }
}

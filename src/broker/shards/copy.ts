// What this broker knows of one shard: the metadata machine, folded from the shard's log. Entries come from the shard's Raft
// group while this broker is a member of it, and from a member's feed otherwise; both are the same committed log, so one
// copy serves both, and whichever is ahead moves it.

import { Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import { decodeCommand } from '../../core/metadata/command-codec.ts'
import type { Result } from '../../core/metadata/commands.ts'
import { apply, emptyState } from '../../core/metadata/machine.ts'
import { decodeSnapshot } from '../../core/metadata/snapshot.ts'
import type { MetadataState, Topic } from '../../core/metadata/types.ts'
import type { TopicId } from '../../model/ids.ts'
import type { Entry, Members, ProposalId, Snapshot } from '../../model/raft.ts'

export interface CopyWatcher {
  /** Topics of this shard are other than before, or gone. */
  changed(copy: ShardCopy, topics: readonly TopicId[]): void
  /** A proposal took its place in the log; this is its own result. */
  applied(copy: ShardCopy, id: ProposalId, result: Result): void
  /** `appliedIndex` has moved; `jumped`: by a snapshot, so that nobody saw what lay between. */
  advanced(copy: ShardCopy, jumped: boolean): void
}

export class ShardCopy {
  readonly shard: number
  state: MetadataState = emptyState()
  /** The term of the entry at `appliedIndex`. */
  appliedTerm = 0
  /** Of the group, at `appliedIndex`; undefined until something tells. */
  members: Members | undefined
  private readonly watcher: CopyWatcher

  constructor(shard: number, watcher: CopyWatcher) {
    this.shard = shard
    this.watcher = watcher
  }

  get appliedIndex(): number {
    return this.state.appliedIndex
  }

  /** Committed entries, one after another; those that the copy has already are passed over. Throws DAMAGED. */
  apply(entries: readonly Entry[]): void {
    const before = this.appliedIndex
    for (const entry of entries) if (entry.index > this.appliedIndex) this.one(entry)
    if (this.appliedIndex > before) this.watcher.advanced(this, false)
  }

  private one({ index, term, payload }: Entry): void {
    this.appliedTerm = term
    if (payload.kind !== 'command') {
      if (payload.kind === 'members') this.members = payload.members
      this.state.appliedIndex = index
      return
    }
    const { result, changed } = apply(this.state, this.command(payload.data), index)
    if (changed.length > 0) this.watcher.changed(this, changed)
    this.watcher.applied(this, payload.id, result)
  }

  private command(data: Uint8Array): ReturnType<typeof decodeCommand> {
    try {
      return decodeCommand(data)
    } catch (error) {
      throw this.unreadable('an entry', error)
    }
  }

  /** The state after its index, when that is news. Throws DAMAGED. */
  install({ index, term, members, data }: Snapshot): void {
    if (index <= this.appliedIndex) return
    const before = this.state
    this.state = this.decoded(data)
    // A state that has seen only entries without commands names none of them.
    this.state.appliedIndex = index
    this.appliedTerm = term
    this.members = members
    const changed = differing(before.topics, this.state.topics)
    if (changed.length > 0) this.watcher.changed(this, changed)
    this.watcher.advanced(this, true)
  }

  private decoded(data: Uint8Array): MetadataState {
    try {
      return decodeSnapshot(data)
    } catch (error) {
      throw this.unreadable('the snapshot', error)
    }
  }

  private unreadable(what: string, error: unknown): unknown {
    if (!(error instanceof Truncated)) return error
    const message = `${what} of metadata shard ${this.shard} cannot be read: ${error.message}`
    return new EastGuardError('DAMAGED', message, { cause: error })
  }
}

function differing(
  before: ReadonlyMap<TopicId, Topic>,
  after: ReadonlyMap<TopicId, Topic>,
): readonly TopicId[] {
  const changed: TopicId[] = []
  for (const [id, topic] of after) {
    // Versions grow with every change of a topic.
    if (before.get(id)?.version !== topic.version) changed.push(id)
  }
  for (const id of before.keys()) if (!after.has(id)) changed.push(id)
  return changed
}

// The metadata log as the rest of the broker sees it: propose, look up, be told of changes. Behind it stands today one
// durable journal, later a Raft group per shard; a proposal is answered with its own result either way.

import type { Command, ResultOf } from '../../core/metadata/commands.ts'
import type { MetadataView } from '../../core/metadata/types.ts'
import type { TopicId } from '../../model/ids.ts'

/** Called after a command was applied, before its proposer is answered. Must not throw. */
export type MetadataListener = (changed: readonly TopicId[], index: number) => void

export interface MetadataLog {
  /** Everything applied so far. Values in it are immutable; the maps change with every command. */
  readonly state: MetadataView
  /**
   * Resolves when the command is durable and applied, with its own result. Rejects with BROKER_STOPPED once the log is
   * closed, with DISK_FAILED when the disk failed.
   */
  propose<C extends Command>(command: C): Promise<ResultOf<C['kind']>>
  /** Returns how to stop listening. A changed topic that is no longer in `state` was deleted. */
  onChange(listener: MetadataListener): () => void
  /** Waits for what was proposed, then closes. */
  close(): Promise<void>
}

// The metadata log as the rest of the broker sees it: propose, look up, be told of changes. Behind it stand many Raft groups;
// a proposal is answered with its own result whichever of them it goes to.

import type { Command, ResultOf } from '../../core/metadata/commands.ts'
import type { MetadataView } from '../../core/metadata/types.ts'
import type { TopicId } from '../../model/ids.ts'

/** Called after a command was applied, before its proposer is answered. Must not throw. */
export type MetadataListener = (changed: readonly TopicId[], shard: number) => void

/** A topic by name, or by id. */
export type TopicRef =
  | { readonly name: string; readonly topicId?: undefined }
  | { readonly topicId: TopicId; readonly name?: undefined }

export interface MetadataLog {
  /** Everything applied so far. Values in it are immutable; the maps change with every command. */
  readonly state: MetadataView
  /**
   * Resolves when the command is durable and applied, with its own result. Rejects with METADATA_UNAVAILABLE when nobody
   * takes it in time, with TIMEOUT when nobody knows what became of it, with STORAGE_FULL or TOO_MANY_REQUESTS, with
   * BROKER_STOPPED once the log is closed, with DISK_FAILED when the disk failed. With a term it takes effect in that term of
   * the shard's leader or never.
   */
  propose<C extends Command>(command: C, term?: number): Promise<ResultOf<C['kind']>>
  /**
   * Resolves when `state` has all that anybody was answered about the topic before this call, wherever. Rejects with
   * METADATA_UNAVAILABLE when nobody who could know answers.
   */
  fresh(topic: TopicRef): Promise<void>
  shardOf(topicId: TopicId): number
  /** The index up to which a shard's log is applied here. */
  appliedOf(shard: number): number
  /** Returns how to stop listening. A changed topic that is no longer in `state` was deleted. */
  onChange(listener: MetadataListener): () => void
  /** Waits for what was proposed, as long as that makes sense, then closes. */
  close(): Promise<void>
}

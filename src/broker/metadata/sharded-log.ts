// All shards as one metadata log: a command goes to the shard that owns its topic, and what the shards have applied is seen
// as one state.

import { EastGuardError } from '../../base/errors.ts'
import { decodeCommand, encodeCommand } from '../../core/metadata/command-codec.ts'
import type { Command, CommandKind, ResultOf } from '../../core/metadata/commands.ts'
import type { MetadataView, Topic } from '../../core/metadata/types.ts'
import type { TopicId } from '../../model/ids.ts'
import { CLUSTER_SHARD, shardOfName, shardOfTopic } from '../../model/shards.ts'
import type { Log } from '../../ports/log.ts'
import type { Journal } from '../../storage/journal/journal.ts'
import type { ShardCopy } from '../shards/copy.ts'
import { Shards } from '../shards/shards.ts'
import type { ShardsOptions } from '../shards/types.ts'
import type { MetadataListener, MetadataLog, TopicRef } from './types.ts'

export type ShardedLogOptions = Omit<ShardsOptions, 'isGrowing'>

/** Commands that only take more: refused when the disk is full. The others free space, or keep what exists going. */
const GROWING: ReadonlySet<CommandKind> = new Set<CommandKind>(['CreateTopic', 'AddPartitions'])

/** Throws DAMAGED when what the journal holds cannot be understood. */
export function openShardedLog(options: ShardedLogOptions): ShardedLog {
  return new ShardedLog(options)
}

export class ShardedLog implements MetadataLog {
  readonly shards: Shards
  readonly state: MetadataView
  private readonly journal: Journal
  private readonly log: Log
  private readonly topics = new Map<TopicId, Topic>()
  private readonly topicsByName = new Map<string, Topic>()
  private readonly listeners = new Set<MetadataListener>()

  constructor(options: ShardedLogOptions) {
    this.journal = options.journal
    this.log = options.ports.log
    const { topics, topicsByName } = this
    const shards = new Shards(
      { ...options, isGrowing: (bytes) => GROWING.has(decodeCommand(bytes).kind) },
      (copy, changed) => this.changed(copy, changed),
    )
    this.shards = shards
    this.state = {
      topics,
      topicsByName,
      get nextProducerId() {
        return shards.copyOf(CLUSTER_SHARD).state.nextProducerId
      },
      get cluster() {
        return shards.copyOf(CLUSTER_SHARD).state.cluster
      },
      get nodes() {
        return shards.copyOf(CLUSTER_SHARD).state.nodes
      },
      get appliedIndex() {
        return shards.copyOf(CLUSTER_SHARD).appliedIndex
      },
    }
  }

  async propose<C extends Command>(command: C, term?: number): Promise<ResultOf<C['kind']>> {
    const bytes = encodeCommand(command)
    // What is applied everywhere is what can be read: a command that has no exact form must not reach a log.
    const exact = decodeCommand(bytes)
    const result = await this.shards.propose(this.shardOfCommand(exact), bytes, term)
    // A command's result is of its own kind: apply answers each with its own.
    return result as ResultOf<C['kind']>
  }

  private shardOfCommand(command: Command): number {
    const { count } = this.shards
    if (command.kind === 'CreateTopic') return shardOfName(command.name, count)
    if ('topicId' in command) return shardOfTopic(command.topicId, count)
    return CLUSTER_SHARD
  }

  fresh({ name, topicId }: TopicRef): Promise<void> {
    const { count } = this.shards
    return this.shards.fresh(
      name !== undefined ? shardOfName(name, count) : shardOfTopic(topicId, count),
    )
  }

  shardOf(topicId: TopicId): number {
    return shardOfTopic(topicId, this.shards.count)
  }

  appliedOf(shard: number): number {
    return this.shards.copyOf(shard).appliedIndex
  }

  /** Resolves when this broker knows all that had been answered before, of every shard. */
  async allFresh(): Promise<void> {
    for (let round = 0; ; round++) {
      const asked = Array.from({ length: this.shards.count }, (_, shard) =>
        this.shards.fresh(shard),
      )
      const answers = await Promise.allSettled(asked)
      const failed = answers.find((answer) => answer.status === 'rejected')
      if (failed === undefined) return
      const { reason } = failed
      if (!(reason instanceof EastGuardError) || reason.code !== 'METADATA_UNAVAILABLE')
        throw reason
      if (round === 0) this.log.warn(`the broker waits for its metadata: ${reason.message}`)
    }
  }

  private changed({ shard, state }: ShardCopy, changed: readonly TopicId[]): void {
    for (const topicId of changed) {
      const before = this.topics.get(topicId)
      const topic = state.topics.get(topicId)
      if (topic !== undefined) {
        this.topics.set(topicId, topic)
        this.topicsByName.set(topic.name, topic)
      } else if (before !== undefined) {
        this.topics.delete(topicId)
        // Of a snapshot both may be news: that one was deleted, and that its name was given again.
        if (this.topicsByName.get(before.name) === before) this.topicsByName.delete(before.name)
      }
    }
    for (const listener of this.listeners) listener(changed, shard)
  }

  onChange(listener: MetadataListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  async close(): Promise<void> {
    await this.shards.close()
    await this.journal.close()
  }
}

// What the journal says of the metadata, without a group to ask: for a data directory that is looked at while nothing runs.
// Of a broker that stands alone that is exact, since whatever it finds in its journal will commit when it starts. Of a
// member among others it may have the last changes that never committed, and lack those that it has not heard of.

import { emptyState, putTopic } from '../../core/metadata/machine.ts'
import type { MetadataState } from '../../core/metadata/types.ts'
import type { RecoveredShard } from '../../storage/journal/journal.ts'
import { ShardCopy } from './copy.ts'
import { restoreShard } from './records.ts'

/** All shards as one state. Throws DAMAGED. */
export function journaledState(recovered: ReadonlyMap<number, RecoveredShard>): MetadataState {
  const all = emptyState()
  for (const [shard, found] of recovered) {
    const { snapshot, entries } = restoreShard(shard, found)
    const copy = new ShardCopy(shard, NOBODY)
    if (snapshot !== undefined) copy.install(snapshot)
    copy.apply(entries)
    for (const topic of copy.state.topics.values()) putTopic(all, topic)
  }
  return all
}

const NOBODY = { changed: () => {}, applied: () => {}, advanced: () => {} }

// How many open segments each broker holds and leads: what placement evens out. Kept up as topics change, since counting anew
// for every topic that is created would cost more than creating it.

import type { MetadataView, Topic } from '../../core/metadata/types.ts'
import type { NodeId, TopicId } from '../../model/ids.ts'
import type { MetadataLog } from '../metadata/types.ts'

export interface NodeLoad {
  readonly held: number
  readonly led: number
}

const NOTHING: NodeLoad = { held: 0, led: 0 }

export class SegmentLoad {
  private readonly state: MetadataView
  private readonly counts = new Map<NodeId, { held: number; led: number }>()
  /** As they were counted. */
  private readonly counted = new Map<TopicId, Topic>()

  constructor(metadata: MetadataLog) {
    this.state = metadata.state
    for (const topicId of this.state.topics.keys()) this.changed(topicId)
    metadata.onChange((changed) => {
      for (const topicId of changed) this.changed(topicId)
    })
  }

  of(node: NodeId): NodeLoad {
    return this.counts.get(node) ?? NOTHING
  }

  private changed(topicId: TopicId): void {
    const before = this.counted.get(topicId)
    const now = this.state.topics.get(topicId)
    if (before !== undefined) this.count(before, -1)
    if (now === undefined) this.counted.delete(topicId)
    else {
      this.count(now, 1)
      this.counted.set(topicId, now)
    }
  }

  private count(topic: Topic, by: 1 | -1): void {
    for (const range of topic.active) {
      const replicas = range.segments.at(-1)?.replicas ?? []
      for (const [at, node] of replicas.entries()) {
        const load = this.counts.get(node) ?? { held: 0, led: 0 }
        load.held += by
        if (at === 0) load.led += by
        if (load.held > 0) this.counts.set(node, load)
        else this.counts.delete(node)
      }
    }
  }
}

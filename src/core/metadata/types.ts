// What the metadata machine knows. A topic is an immutable value: a change makes a new one that shares all that stayed
// the same, so readers keep what they looked up without a copy, and the views that clients see cost nothing to make.
//
//   topic  ──ranges──>  range 0  [0, 64)   sealed   segments 1 2 3        ┐ lineage: offsets of a partition run on
//                       range 1  [0, 32)   active   segments 4 5(open)    │ from range 0 into 1 (or 2), segment
//                       range 2  [32, 64)  active   segments 4(open)      ┘ numbers grow along it
//
// The active ranges tile [0, P) at every log index [I9]; a range is active exactly while its last segment is open.
// Ranges of which retention has dropped every segment are gone from the list.

import type { ClusterId, NodeId, TopicId } from '../../model/ids.ts'
import type { NodeRole, RangeView, SegmentView, TopicView } from '../../model/metadata.ts'

export interface Segment extends SegmentView {
  /** Grows with every CancelEnd; sealing names the attempt it means (PROTOCOLS §5). */
  readonly attempt: number
  /** Which of the states staged for this segment number is the one: `LogStore.loadState(key, token)`. Empty: none was
   * staged, the range state is the empty one at `firstOffsets`. */
  readonly token: string
  /** Of that state; empty with an empty token. */
  readonly stateDigest: string
  /** Empty: open, or not settled, which is until every replica has shown that it has all of it. */
  readonly digest: string
  /** Of an unsettled one, when its own replicas may lack its last entries. */
  readonly tail: Tail | undefined
}

/** The last entries of a sealed segment, which those who were chosen for its successor have stored with the range state. */
export interface Tail {
  /** The entry number of its first; it goes to the segment's end. */
  readonly from: number
  readonly holders: readonly NodeId[]
  readonly token: string
}

export interface Range extends RangeView {
  readonly segments: readonly Segment[]
}

export interface Topic extends TopicView {
  readonly ranges: readonly Range[]
  /** The active ones, by first partition. */
  readonly active: readonly Range[]
  /** The number that the next range gets. */
  readonly nextRange: number
  /** Chosen by the creator, so that a retried creation is known again; empty: none. */
  readonly creationToken: string
}

/** What a cluster is from its founding on. */
interface ClusterRecord {
  readonly clusterId: ClusterId
  readonly shards: number
  readonly foundedAtMs: number
}

/** A broker as the cluster knows it. */
export interface NodeRecord {
  /** For ever, and nobody else's. */
  readonly number: number
  /** draining: it is given nothing, and what it has goes to others. removed: likewise, and it never comes back. */
  readonly role: NodeRole
}

/** The state as others may see it. `apply` (machine.ts) changes it in place. */
export interface MetadataView {
  readonly topics: ReadonlyMap<TopicId, Topic>
  readonly topicsByName: ReadonlyMap<string, Topic>
  /** Producer ids below it are given out. */
  readonly nextProducerId: number
  /** Undefined before the first entry of the cluster, and for ever in all shards but one. */
  readonly cluster: ClusterRecord | undefined
  readonly nodes: ReadonlyMap<NodeId, NodeRecord>
  /** The log index of the last command applied. */
  readonly appliedIndex: number
}

export interface MetadataState extends MetadataView {
  readonly topics: Map<TopicId, Topic>
  readonly topicsByName: Map<string, Topic>
  nextProducerId: number
  cluster: ClusterRecord | undefined
  readonly nodes: Map<NodeId, NodeRecord>
  nextNodeNumber: number
  appliedIndex: number
}

/** Who holds a new segment, and under which token its range state was staged with them. */
export interface Placement {
  /** replicas[0] leads. */
  readonly replicas: readonly NodeId[]
  readonly token: string
  readonly stateDigest: string
}

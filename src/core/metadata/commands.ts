// The commands of the metadata log and what each answers. A command carries everything that its effect depends on: fresh
// ids, tokens, times and placement are chosen by the proposer, so that applying it is a pure function of state and
// command. Conditions are evaluated when it is applied, never when it is proposed.

import type { ErrorCode } from '../../base/errors.ts'
import type { ClusterId, NodeId, TopicId } from '../../model/ids.ts'
import type { NodeRole } from '../../model/metadata.ts'
import type { TopicPolicy } from '../../model/policy.ts'
import type { Placement, Topic } from './types.ts'

export interface CreateTopic {
  readonly kind: 'CreateTopic'
  readonly name: string
  readonly topicId: TopicId
  readonly policy: TopicPolicy
  /** One per range, in partition order: `policy.ranges` of them. */
  readonly placement: readonly Placement[]
  /** A retry with the same token gets the first's result. Empty: no token. */
  readonly creationToken: string
  /** An existing topic of equal policy is a success. */
  readonly ifNotExists: boolean
  /** The broker itself creates a topic of a protected name. */
  readonly system: boolean
  readonly timeMs: number
}

export interface DeleteTopic {
  readonly kind: 'DeleteTopic'
  readonly topicId: TopicId
}

/** What AlterTopic may change. */
export type PolicyChanges = Partial<Omit<TopicPolicy, 'partitions' | 'rangeMode' | 'ranges'>>

export interface AlterTopic {
  readonly kind: 'AlterTopic'
  readonly topicId: TopicId
  readonly changes: PolicyChanges
}

/** The new partitions form a range of their own at the end; the ranges there are stay untouched. */
export interface AddPartitions {
  readonly kind: 'AddPartitions'
  readonly topicId: TopicId
  /** The new total. Equal to the present one: nothing changes. */
  readonly partitions: number
  readonly placement: Placement
  readonly timeMs: number
}

/** The end that a leader gave for an open segment, under an attempt. */
export interface GivenEnd {
  readonly range: number
  /** The open segment, compared when applied. */
  readonly segment: number
  /** Likewise. */
  readonly attempt: number
  readonly endEntry: number
  /** Of each partition of the range, in order. */
  readonly nextOffsets: readonly number[]
}

export interface RollSegment extends GivenEnd {
  readonly kind: 'RollSegment'
  readonly topicId: TopicId
  /** Entries from here to the end are stored on the successor's replicas under its token; the end itself: none are. */
  readonly tailFrom: number
  readonly placement: Placement
  readonly timeMs: number
}

export interface CancelEnd {
  readonly kind: 'CancelEnd'
  readonly topicId: TopicId
  readonly range: number
  readonly segment: number
  readonly attempt: number
}

export interface ChildPlacement extends Placement {
  /** The range number under which the state was staged: the topic's `nextRange`, and the one after it. */
  readonly range: number
}

export interface SplitRange extends GivenEnd {
  readonly kind: 'SplitRange'
  readonly topicId: TopicId
  /** The first partition of the right child. */
  readonly atPartition: number
  readonly left: ChildPlacement
  readonly right: ChildPlacement
  readonly timeMs: number
}

export interface MergeRange {
  readonly kind: 'MergeRange'
  readonly topicId: TopicId
  readonly left: GivenEnd
  readonly right: GivenEnd
  readonly child: ChildPlacement
  readonly timeMs: number
}

/** Every replica of a sealed segment has all of it, with this digest: its tail is needed no more. */
export interface SettleSegment {
  readonly kind: 'SettleSegment'
  readonly topicId: TopicId
  readonly range: number
  readonly segment: number
  readonly digest: string
}

/**
 * Changes who holds a sealed segment: first one that adds, later one that drops. It compares and sets: what is right for the
 * replicas that its proposer saw may lose a copy too many after another change, which may be under way already.
 */
export interface ReassignSegment {
  readonly kind: 'ReassignSegment'
  readonly topicId: TopicId
  readonly range: number
  readonly segment: number
  readonly change: 'add' | 'drop'
  readonly replica: NodeId
  /** The segment's replicas, as the proposer saw them. Empty, as in version 1: whatever they are. */
  readonly seen: readonly NodeId[]
}

/** Retention: the sealed segments of a range below `belowSegment` go, and log start offsets rise to what is left. */
export interface DropSegments {
  readonly kind: 'DropSegments'
  readonly topicId: TopicId
  readonly range: number
  readonly belowSegment: number
}

/** DeleteRecords: offsets below are gone for readers. Only ever raises. */
export interface SetLogStart {
  readonly kind: 'SetLogStart'
  readonly topicId: TopicId
  readonly starts: readonly { readonly partition: number; readonly offset: number }[]
}

export interface AllocateProducerIds {
  readonly kind: 'AllocateProducerIds'
  readonly count: number
}

/** The first entry of a cluster. */
export interface FoundCluster {
  readonly kind: 'FoundCluster'
  readonly clusterId: ClusterId
  /** How many there are, for ever. */
  readonly shards: number
  readonly timeMs: number
}

/** Gives a node its number; asked again, the same. */
export interface AddNode {
  readonly kind: 'AddNode'
  readonly nodeId: NodeId
}

/** Drains a broker, ends that, or removes it for good. */
export interface SetNodeRole {
  readonly kind: 'SetNodeRole'
  readonly nodeId: NodeId
  readonly role: NodeRole
}

export type Command =
  | CreateTopic
  | DeleteTopic
  | AlterTopic
  | AddPartitions
  | RollSegment
  | CancelEnd
  | SplitRange
  | MergeRange
  | SettleSegment
  | ReassignSegment
  | DropSegments
  | SetLogStart
  | AllocateProducerIds
  | FoundCluster
  | AddNode
  | SetNodeRole
export type CommandKind = Command['kind']
export type CommandOf<K extends CommandKind> = Extract<Command, { kind: K }>

/** What a successful command of each kind answers. */
interface Answers {
  CreateTopic: { readonly topic: Topic; readonly outcome: 'created' | 'existing' }
  DeleteTopic: { readonly topic: Topic }
  AlterTopic: { readonly topic: Topic }
  AddPartitions: { readonly topic: Topic }
  /** What the roll that committed first says, which for a retry with another token is not what it proposed. */
  RollSegment: {
    readonly topic: Topic
    readonly segment: number
    readonly token: string
    readonly endEntry: number
  }
  CancelEnd: { readonly attempt: number }
  SplitRange: { readonly topic: Topic; readonly left: number; readonly right: number }
  MergeRange: { readonly topic: Topic; readonly child: number }
  SettleSegment: { readonly topic: Topic }
  ReassignSegment: { readonly topic: Topic; readonly replicas: readonly NodeId[] }
  DropSegments: { readonly topic: Topic; readonly dropped: readonly number[] }
  SetLogStart: { readonly topic: Topic }
  AllocateProducerIds: { readonly first: number; readonly count: number }
  FoundCluster: object
  AddNode: { readonly number: number }
  SetNodeRole: { readonly role: NodeRole }
}

export interface Refusal {
  readonly ok: false
  readonly code: ErrorCode
  readonly message: string
  readonly detail: Readonly<Record<string, unknown>>
}
export type ResultOf<K extends CommandKind> =
  | { readonly ok: true; readonly answer: Answers[K] }
  | Refusal
export type Result = { [K in CommandKind]: ResultOf<K> }[CommandKind]

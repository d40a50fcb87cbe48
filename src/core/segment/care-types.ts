// What the coordinator's machines of a segment are told and what they want done. Metadata, placement and messages come in as
// these shapes: the machines know no other room.

import type { ErrorCode } from '../../base/errors.ts'
import type { NodeId, TopicId } from '../../model/ids.ts'
import type { EndReason } from './types.ts'

/** An active range, with its open segment: as the shard's log says, as far as it is applied. */
export interface CareView {
  readonly topicId: TopicId
  readonly range: number
  readonly segment: {
    readonly segment: number
    readonly attempt: number
    /** replicas[0] leads. */
    readonly replicas: readonly NodeId[]
  }
  readonly policy: ReplicaPolicy
}

export interface ReplicaPolicy {
  readonly replicationFactor: number
  readonly minInsyncReplicas: number
}

/** Brokers, as this one knows them now. */
export interface Candidates {
  /**
   * Healthy brokers that may be given a segment of this range, at most `n`, the leader first. Those of `keep` that may be given it
   * are taken before others, those of `without` not at all; `first` leads when it is among them. See core/placement.
   */
  pick(
    n: number,
    keep: readonly NodeId[],
    first?: NodeId,
    without?: ReadonlySet<NodeId>,
  ): readonly NodeId[]
  /** SWIM does not hold it dead or left. */
  alive(node: NodeId): boolean
  /** Since when, of one that is not alive, if that is known. */
  deadSince?(node: NodeId): number | undefined
  /** It is being drained, or was removed: it is given nothing, and what it has goes to others. */
  leaving(node: NodeId): boolean
  /** How many brokers belong to the cluster and are to stay in it: who is dead, stopped or full may be well again. */
  members(): number
  /** It is being stopped in order, or was, and is not back yet. */
  stopping?(node: NodeId): boolean
  /** It has no room: it is given nothing, and what it has of open segments goes to others, if these can take it. */
  diskFull?(node: NodeId): boolean
  /** Of its present start, as far as known. */
  boot(node: NodeId): number | undefined
}

/** Who gets a new segment, and what was staged with them. */
interface StagedPlacement {
  readonly replicas: readonly NodeId[]
  readonly token: string
  readonly stateDigest: string
}

/** Propose RollSegment. */
export interface RollEffect {
  readonly kind: 'roll'
  readonly attempt: number
  readonly end: number
  readonly tailFrom: number
  readonly nextOffsets: readonly number[]
  readonly placement: StagedPlacement
  /** For logs. */
  readonly why: EndReason
}

/** Propose CancelEnd. */
export interface CancelEffect {
  readonly kind: 'cancel'
  readonly attempt: number
}

export interface LogEffect {
  readonly kind: 'log'
  readonly level: 'info' | 'warn' | 'error'
  readonly text: string
  readonly detail: Readonly<Record<string, unknown>>
  /** Many ranges may say the same at a time, for one reason. */
  readonly shared?: boolean
}

export type CareEffect =
  | {
      readonly kind: 'ask-end'
      readonly to: NodeId
      readonly attempt: number
      readonly why: EndReason
    }
  | { readonly kind: 'fence'; readonly to: readonly NodeId[] }
  | {
      readonly kind: 'stage'
      /** The holder. */
      readonly to: NodeId
      readonly token: string
      readonly end: number
      readonly tailFrom: number
      readonly replicas: readonly NodeId[]
    }
  | {
      readonly kind: 'end-refused'
      readonly to: NodeId
      readonly code: ErrorCode
      readonly text: string
    }
  | RollEffect
  | CancelEffect
  | LogEffect

/** What became of a proposal. Unknown: it may yet be applied. */
export type ProposalOutcome = 'applied' | 'refused' | 'unknown'

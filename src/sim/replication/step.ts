// What happens to the brokers of a run and to their disks, beside what can go wrong in any cluster (../cluster/step.ts).

import type { Step } from '../cluster/step.ts'

export type DataStep =
  /** Its disk has no more room for a while but what is kept for what must always be written. */
  | { readonly kind: 'full'; readonly broker: number; readonly forMs: number }
  /** A bit of a segment that has ended flips on its disk; which, which byte and which bit are shares. */
  | {
      readonly kind: 'flip'
      readonly broker: number
      readonly file: number
      readonly byte: number
      readonly bit: number
    }
  /** It shall hold nothing for a while. */
  | { readonly kind: 'drain'; readonly broker: number; readonly forMs: number }
  /** A bit of its write-ahead log flips, likewise. */
  | {
      readonly kind: 'flip-log'
      readonly broker: number
      readonly byte: number
      readonly bit: number
    }

/** What may be aimed (aimed.ts), `afterMs` after the aim was taken. */
export type StruckStep = Extract<
  Step | DataStep,
  { kind: 'cut' | 'slow-link' | 'power-cut' | 'slow-disk' | 'pause' | 'flip-log' }
> & { readonly afterMs: number }

/** Which range of the first topic is a share of those that it has; brokers are named by what they are to it. */
export interface AimedStep {
  readonly kind: 'aimed'
  readonly range: number
  readonly steps: readonly StruckStep[]
}

export type ReplicationStep = Exclude<Step, { kind: 'move' | 'hand-over' }> | DataStep | AimedStep

/** `atMs` counts from when the brokers are up. */
export type TimedStep = ReplicationStep & { readonly atMs: number }

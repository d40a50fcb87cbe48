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

export type ReplicationStep = Exclude<Step, { kind: 'move' | 'hand-over' }> | DataStep

/** `atMs` counts from when the brokers are up. */
export type TimedStep = ReplicationStep & { readonly atMs: number }

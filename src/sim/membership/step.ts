// What happens to brokers as members of a cluster, beside what can go wrong with any of them (../cluster/step.ts). Those that
// take a broker's data directory away for ever are only taken while the cluster can afford it (watch.ts): metadata has
// three members, and nobody promises anything of a shard that has lost two of them at once.

import type { Step } from '../cluster/step.ts'

export type ComingStep =
  /** A new broker joins. */
  | { readonly kind: 'join'; readonly broker: number }
  /** It leaves, as by SIGTERM, and never comes back. */
  | { readonly kind: 'retire'; readonly broker: number }
  /** Its disk is lost; on an empty one it is a new node. */
  | { readonly kind: 'replace'; readonly broker: number; readonly downMs: number }
  /** The same, and somebody forgets to name the seeds: it founds a cluster of its own, and must find out. */
  | { readonly kind: 'mistake'; readonly broker: number; readonly downMs: number }
  /** It shall hold nothing; or, again, what the ring says. */
  | { readonly kind: 'drain'; readonly broker: number }
  | { readonly kind: 'undrain'; readonly broker: number }
  /** It is told to hold nothing ever again; when it does, it gets an empty disk and joins as a new node. */
  | { readonly kind: 'remove'; readonly broker: number; readonly downMs: number }
  /** All are stopped or killed at once, and come back one after another. */
  | { readonly kind: 'mass-restart'; readonly gently: boolean; readonly downMs: readonly number[] }

export type MembershipStep =
  | Exclude<Step, { kind: 'move' | 'hand-over' | 'wipe' | 'copy' | 'restore' }>
  | ComingStep

/** `atMs` counts from when the first brokers are up. */
export type TimedStep = MembershipStep & { readonly atMs: number }

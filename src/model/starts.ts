// The starts of a node, as it tells them and as others remember them. Each start of a data directory has a number, the
// boot count, and an id that was drawn for it. The number alone does not tell a directory from an older copy of itself that
// counts on by itself; the id of a start that both should share does:
//
//                      5:a ── 6:b ── 7:c                       the directory; a peer has met 7:c
//                        └─── 6:x                               a copy from start 5: behind what the peer has met
//                        └─── 6:x ── 7:y ── 8:z                 the same, later: its start 7 is another
//                      5:a ── 6:b ── 7:c ── ... ── 52:p          its last starts reach back to 21: nothing speaks against it
//
// So a node tells its last starts, and whoever has met one of them, or one before, knows whether it is in the past of the
// node that speaks.

import type { NodeId } from './ids.ts'

export interface Start {
  /** Grows with every start of the node. */
  readonly bootCount: number
  /** 16 hexadecimal digits. */
  readonly id: string
}

export const START_ID_BYTES = 8
/** So many of its last starts a node tells. */
export const STARTS_MAX = 32

/** The last starts of a node, each later than the one before; at least one, at most STARTS_MAX. */
export type Starts = readonly [Start, ...Start[]]

/** Of each node the newest start that was met. */
export interface StartMemory {
  met(node: NodeId): Start | undefined
  /** Resolves when it would outlive a crash. Changes nothing when a later start of the node has been met. */
  remember(node: NodeId, start: Start): Promise<void>
}

export function withStart(starts: readonly Start[], start: Start): Starts {
  const [first = start, ...later] = [...starts, start].slice(-STARTS_MAX)
  return [first, ...later]
}

export function newestStart(starts: Starts): Start {
  return starts.at(-1) ?? starts[0]
}

/** Whether who tells `starts` has been through `met`, a start of the same node; where they reach back too little, by the count. */
export function inPast(met: Start, starts: Starts): boolean {
  if (met.bootCount > newestStart(starts).bootCount) return false
  if (met.bootCount < starts[0].bootCount) return true
  return starts.some(({ bootCount, id }) => bootCount === met.bootCount && id === met.id)
}

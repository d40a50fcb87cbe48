// What the parts of a member share: its clock, who it knows, what it tells, and the way out.

import type { Address } from '../../base/address.ts'
import type { NodeId } from '../../model/ids.ts'
import type { NamedCluster, PacketBody, ShardHint, SyncRequest } from '../../model/swim.ts'
import type { Gossip } from './gossip.ts'
import type { Health } from './health.ts'
import type { Table } from './table.ts'
import type { Counters, SwimEvent, SwimOptions } from './types.ts'

export interface SwimHost {
  readonly options: SwimOptions
  /** As this member names it to others. */
  readonly namedCluster: NamedCluster | undefined
  /** In ms, on this member's clock. */
  readonly now: number
  readonly joined: boolean
  readonly table: Table
  readonly gossip: Gossip
  readonly health: Health
  readonly hints: ReadonlyMap<number, ShardHint>
  readonly counters: Counters
  /** `node`: whose packet it is, if known; one that is held for suspect or dead is told so along with it. */
  send(to: Address, node: NodeId | undefined, body: PacketBody): void
  sync(to: Address, request: SyncRequest): void
  emit(event: SwimEvent): void
  /** A whole number in [0, below). */
  below(below: number): number
}

/** In an order by chance. */
export function shuffled<T>(host: SwimHost, values: readonly T[]): T[] {
  const list = [...values]
  for (let i = list.length - 1; i > 0; i--) {
    const j = host.below(i + 1)
    const kept = list[i] as T
    list[i] = list[j] as T
    list[j] = kept
  }
  return list
}

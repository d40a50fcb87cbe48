// What others see of the links on the data port.
//
// Between two brokers there are up to two connections, one that each has dialled. On `out`, which this broker has dialled, it
// leads, holds or asks; on `in` the peer does, and this broker follows, stores or answers. Each breaks as a whole, by itself,
// and with it all that was said on it.

import type { NodeId } from '../../model/ids.ts'
import type { Address, Listener } from '../../ports/streams.ts'
import type { DataMessage, DataWord } from '../../wire/data/types.ts'
import type { Way } from '../links/types.ts'

export interface FlowOptions {
  readonly way: Way
  /** It yields to flows that are not. */
  readonly bulk: boolean
  /**
   * Whole frames (wire/data) of about so many bytes, more only if one entry alone is larger; none when nothing is left. Asked
   * only while the connection is up.
   */
  fill(budgetBytes: number): readonly Uint8Array[]
}

export interface Flow {
  /** There is something to send. `fill` is called when it is its turn, at the latest when the event that is being handled has been. */
  ready(): void
  /** It is asked no more. */
  close(): void
}

/** `boot` is the peer's. Nothing is received on a connection before it is told to be up, nor after it is told to be down. */
export type DataLinkListener = (node: NodeId, way: Way, up: boolean, boot: number) => void

export interface DataLinks {
  /** The listener knows the port that was chosen for 0; `stop` closes it. Rejects with an Error that names the address. */
  listen(address: Address): Promise<Listener>
  stop(): Promise<void>
  /** As long as a flow with way `out` is open, the peer is dialled and dialled again. */
  flow(to: NodeId, options: FlowOptions): Flow
  /**
   * Goes before all flows, on the way of its kind. False: it was dropped, for there is no connection, or no room on it; `out`
   * is dialled then. Calls nobody back before it returns.
   */
  send(to: NodeId, message: DataWord): boolean
  onLink(listener: DataLinkListener): void
}

/** Given at construction. The entries are the receiver's to keep. */
export type DataReceiver = (from: NodeId, boot: number, message: DataMessage) => void

// The data port, opened before the broker belongs to any cluster: a start that fails for want of it must leave no cluster
// behind. Until somebody listens on its `streams` whoever connects is cut off, and dials again.

import type { Address, Connection, Listener, Streams } from '../../ports/streams.ts'
import { closeUnused } from '../links/link.ts'

export interface DataPort {
  /** For broker/data: connections to this port come from here. It has one listener at a time. */
  readonly streams: Streams
  readonly address: Address
  /** What was handed on lives on. */
  close(): Promise<void>
}

/** Rejects with an Error that names the address. */
export async function openDataPort(streams: Streams, address: Address): Promise<DataPort> {
  let handOn: ((connection: Connection) => void) | undefined
  const listener = await streams.listen(address, (connection) => {
    if (handOn !== undefined) return handOn(connection)
    closeUnused(connection)
  })
  const taken = (onConnection: (connection: Connection) => void): Listener => {
    if (handOn !== undefined) throw new Error('the data port has its listener already')
    handOn = onConnection
    return {
      address: listener.address,
      close: async () => {
        if (handOn === onConnection) handOn = undefined
      },
    }
  }
  return {
    address: listener.address,
    streams: {
      listen: async (_, onConnection) => taken(onConnection),
      connect: (to, how) => streams.connect(to, how),
    },
    close: () => listener.close(),
  }
}

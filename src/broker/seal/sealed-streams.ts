// Streams whose connections are sealed: whoever gets one speaks on it as on any other, and need not know.

import type { Streams } from '../../ports/streams.ts'
import type { ClusterKeys } from './cluster-keys.ts'
import type { KeyRefusals } from './refusals.ts'
import { SealedConnection } from './sealed-connection.ts'

export function sealedStreams(streams: Streams, keys: ClusterKeys, refusals: KeyRefusals): Streams {
  return {
    listen: (address, onConnection) =>
      streams.listen(address, (connection) =>
        onConnection(new SealedConnection(connection, 'acceptor', keys, refusals)),
      ),
    connect: async (address, options) => {
      const connection = await streams.connect(address, options)
      return new SealedConnection(connection, 'dialer', keys, refusals)
    },
  }
}

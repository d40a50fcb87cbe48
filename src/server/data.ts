// The links on the data port, once the broker knows who it is. They receive from when `listen` was called: by then there is a
// broker that knows what to do with it.

import { DataPeers } from '../broker/data/data-peers.ts'
import { DATA_SETTINGS } from '../broker/data/settings.ts'
import type { DataReceiver } from '../broker/data/types.ts'
import { type MetadataOptions, memoryOf } from './metadata.ts'

/** Undefined when the broker stays alone. */
export function dataLinks(options: MetadataOptions, receive: DataReceiver): DataPeers | undefined {
  const { ports, neighbourhood, cluster, dataDir } = options
  const { data } = neighbourhood
  if (data === undefined) return undefined
  return new DataPeers({
    ports: { ...ports, streams: data.streams },
    identity: { clusterId: cluster.id, nodeId: dataDir.nodeId, starts: dataDir.starts },
    directory: { addressOf: (node) => neighbourhood.dataAddressOf(node) },
    settings: DATA_SETTINGS,
    memory: memoryOf(options),
    receive,
    onRefusedAsOld: (by) => options.onRefusedAsOld(by),
  })
}

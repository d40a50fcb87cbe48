// The control of segments of a whole broker: what it needs of the metadata, the neighbours and the store.

import { Control } from '../broker/coordinator/control.ts'
import type { SeenBroker } from '../broker/coordinator/types.ts'
import type { Replicas } from '../broker/replica/types.ts'
import type { LogStore } from '../storage/types.ts'
import type { MetadataOptions, OpenedMetadata } from './metadata.ts'

/** Other brokers are heard from here on; to be stopped before what it was given. */
export function openControl(
  { ports, settings, dataDir, neighbourhood }: MetadataOptions,
  part: OpenedMetadata,
  store: LogStore,
  replicas: Replicas,
): Control {
  const { nodeId, bootCount: boot } = dataDir
  const { hostLabel, membership } = settings
  const rackLabel = membership?.rackLabel ?? ''
  const own: SeenBroker = { node: nodeId, hostLabel, rackLabel, alive: true, boot }
  const { log: metadata } = part
  const control = new Control({
    ports,
    nodeId,
    boot,
    metadata,
    shards: metadata.shards,
    timing: settings.segmentTiming,
    leaseSyncMs: settings.leaseSyncMs,
    brokers: () => [own, ...neighbourhood.known().map(seen)],
    oldestSyncMs: () => store.oldestSyncAgeMs(),
    diskFull: () => store.isFull,
    send: (to, messages) => part.send(to, messages),
    replicas,
  })
  part.onMessages((from, messages) => control.receive(from, messages))
  return control
}

type Neighbour = ReturnType<MetadataOptions['neighbourhood']['known']>[number]

function seen({ nodeId: node, hostLabel, rackLabel, state, boot }: Neighbour): SeenBroker {
  const alive = state === 'alive' || state === 'suspect'
  return { node, hostLabel, rackLabel, alive, boot }
}

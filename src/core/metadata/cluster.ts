// What belongs to the cluster as a whole. Shard 0 is given these commands; in the others they never occur.

import type { AddNode, FoundCluster, ResultOf, SetNodeRole } from './commands.ts'
import { refuse } from './topic.ts'
import type { MetadataState } from './types.ts'

/** 0 is what an unset field looks like, so it is nobody's number. */
export const FIRST_NODE_NUMBER = 1

export function foundCluster(
  state: MetadataState,
  { clusterId, shards, timeMs }: FoundCluster,
): ResultOf<'FoundCluster'> {
  const { cluster } = state
  if (cluster === undefined) state.cluster = { clusterId, shards, foundedAtMs: timeMs }
  else if (cluster.clusterId !== clusterId || cluster.shards !== shards) {
    const message = `this is cluster ${cluster.clusterId} of ${cluster.shards} shards already`
    return refuse('METADATA_CONFLICT', message)
  }
  return { ok: true, answer: {} }
}

/** A node has one number for ever, and nobody else gets it. */
export function addNode(state: MetadataState, { nodeId }: AddNode): ResultOf<'AddNode'> {
  let known = state.nodes.get(nodeId)
  if (known === undefined) {
    known = { number: state.nextNodeNumber++, role: 'member' }
    state.nodes.set(nodeId, known)
  }
  return { ok: true, answer: { number: known.number } }
}

export function setNodeRole(
  state: MetadataState,
  { nodeId, role }: SetNodeRole,
): ResultOf<'SetNodeRole'> {
  const known = state.nodes.get(nodeId)
  if (known === undefined) {
    return refuse('UNKNOWN_BROKER', `there is no broker with the node id ${nodeId}`, { nodeId })
  }
  if (known.role === 'removed' && role !== 'removed') {
    const message = `broker ${known.number} was removed, and its node id is never used again`
    return refuse('METADATA_CONFLICT', message, { nodeId })
  }
  state.nodes.set(nodeId, { ...known, role })
  return { ok: true, answer: { role } }
}

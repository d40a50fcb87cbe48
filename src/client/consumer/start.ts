// Where a consumer begins in each of its partitions, and where it ends if it is to end.

import { EastGuardError } from '../../base/errors.ts'
import type { OffsetAt, PartitionOffset } from '../api.ts'
import type { Cluster } from '../cluster.ts'
import { logRange, offsetsAt, outOfRange } from '../offsets.ts'
import type { TopicRoute } from '../route.ts'
import type { Deadline } from '../timing.ts'
import type { ConsumerSettings } from './settings.ts'

export interface Start {
  readonly partition: number
  readonly offset: number
  /** Infinity: it goes on as records come. */
  readonly end: number
}

export async function startOffsets(
  cluster: Cluster,
  route: TopicRoute,
  settings: ConsumerSettings,
  deadline: Deadline,
  seeks: ReadonlyMap<number, number>,
): Promise<Start[]> {
  const count = route.view.policy.partitions
  const partitions = settings.partitions ?? Array.from({ length: count }, (_, i) => i)
  for (const partition of partitions) {
    if (partition < count) continue
    const message = `topic '${settings.topic}' has no partition ${partition}, only ${count}`
    throw new EastGuardError('UNKNOWN_PARTITION', message)
  }
  const list = (of: readonly number[], at: OffsetAt): Promise<PartitionOffset[]> =>
    of.length === 0 ? Promise.resolve([]) : offsetsAt(cluster, route, of, at, deadline)
  // The end first: records that come in between must not lie before the start.
  const ends = settings.stopAtEnd ? byPartition(await list(partitions, 'latest')) : undefined
  const { from } = settings
  let named: Readonly<Record<number, number>> = {}
  let otherwise: OffsetAt = 'earliest'
  if (from === 'earliest' || from === 'latest') otherwise = from
  else if ('timestampMs' in from) otherwise = from
  else if ('offset' in from) named = Object.fromEntries(partitions.map((p) => [p, from.offset]))
  else {
    named = from.offsets
    otherwise = from.otherwise ?? 'earliest'
  }
  if (seeks.size > 0) named = { ...named, ...Object.fromEntries(seeks) }
  const unnamed = partitions.filter((partition) => named[partition] === undefined)
  const found = byPartition(await list(unnamed, otherwise))
  const starts = partitions.map((partition) => {
    const end = ends?.get(partition) ?? Infinity
    const offset = named[partition] ?? Math.min(found.get(partition) ?? 0, end)
    return { partition, offset, end }
  })
  return Promise.all(starts.map((start) => within(start)))

  /** Past the end that it is to stop at: no broker would be asked, and the reader would end as if it had read all. */
  async function within(start: Start): Promise<Start> {
    const { partition, offset, end } = start
    const { onOffsetOutOfRange } = settings
    if (offset <= end) return start
    if (onOffsetOutOfRange === 'error') {
      const range = await logRange(cluster, route, partition, deadline)
      throw outOfRange(settings.topic, partition, offset, range)
    }
    const [place] = await list([partition], onOffsetOutOfRange)
    return { partition, offset: Math.min(place?.offset ?? end, end), end }
  }
}

function byPartition(offsets: readonly PartitionOffset[]): Map<number, number> {
  return new Map(offsets.map(({ partition, offset }) => [partition, offset]))
}

// Asking the leaders of a topic's partitions where things are: the start, the end, the first record at or after a time.

import { Backoff } from '../base/backoff.ts'
import { EastGuardError } from '../base/errors.ts'
import type { Address } from '../ports/streams.ts'
import { AT_EARLIEST, AT_LATEST, listOffsets } from '../wire/native/list-offsets.ts'
import type { OffsetAt, PartitionOffset } from './api.ts'
import { type Cluster, outOfTime } from './cluster.ts'
import { routeTo, type TopicRoute } from './route.ts'
import { type Deadline, pause } from './timing.ts'

/** In the order of `partitions`. Retries what may pass until the deadline; rejects with the first other error. */
export async function offsetsAt(
  cluster: Cluster,
  topic: TopicRoute,
  partitions: readonly number[],
  at: OffsetAt,
  deadline: Deadline,
): Promise<PartitionOffset[]> {
  const asked = await ask(cluster, topic, partitions, atNumber(at), deadline)
  const beyond = partitions.filter((partition) => asked.get(partition)?.offset === -1)
  if (beyond.length === 0) return partitions.map((partition) => found(asked, partition))
  // Nothing is that young: the end is where the first such record will be.
  const ends = await ask(cluster, topic, beyond, AT_LATEST, deadline)
  return partitions.map((partition) => found(ends.has(partition) ? ends : asked, partition))
}

/** An offset that is before the start or past the end, told with both. */
export async function outOfRange(
  cluster: Cluster,
  topic: TopicRoute,
  partition: number,
  offset: number,
  deadline: Deadline,
): Promise<EastGuardError> {
  const { name } = topic.view
  const [earliest, latest] = await Promise.all(
    (['earliest', 'latest'] as const).map(async (at) => {
      const [place] = await offsetsAt(cluster, topic, [partition], at, deadline)
      return place?.offset ?? -1
    }),
  )
  return new EastGuardError(
    'OFFSET_OUT_OF_RANGE',
    `'${name}', partition ${partition} has no offset ${offset}: earliest is ${earliest}, latest is ${latest}`,
    { detail: { topic: name, partition, offset, earliest, latest } },
  )
}

function found(in_: ReadonlyMap<number, PartitionOffset>, partition: number): PartitionOffset {
  return in_.get(partition) ?? { partition, offset: -1, timestamp: -1 }
}

function atNumber(at: OffsetAt): number {
  if (at === 'earliest') return AT_EARLIEST
  if (at === 'latest') return AT_LATEST
  if (!Number.isSafeInteger(at.timestampMs) || at.timestampMs < 0) {
    const message = `timestampMs is ${String(at.timestampMs)}; a whole number from 0 is allowed`
    throw new EastGuardError('INVALID_ARGUMENT', message)
  }
  return at.timestampMs
}

async function ask(
  cluster: Cluster,
  topic: TopicRoute,
  partitions: readonly number[],
  at: number,
  deadline: Deadline,
): Promise<Map<number, PartitionOffset>> {
  const { ports, settings } = cluster
  const { name, topicId } = topic.view
  const what = `listing offsets of '${name}'`
  const backoff = new Backoff(ports.random, settings.backoffMs, settings.backoffMaxMs)
  const results = new Map<number, PartitionOffset>()
  let route = topic
  let left = partitions
  for (;;) {
    const groups = [...byLeader(route, left)]
    const answers = await Promise.all(
      groups.map(([leader, group]) => {
        const request = { partitions: group.map((partition) => ({ topicId, partition, at })) }
        return cluster.call(what, listOffsets, request, deadline, leader)
      }),
    )
    let failure: EastGuardError | undefined
    const again: number[] = []
    for (const [i, answer] of answers.entries()) {
      const group = groups[i]?.[1] ?? []
      for (const [j, partition] of group.entries()) {
        const result = answer.partitions[j]
        if (result === undefined) {
          throw new EastGuardError('DECODE_FAILED', `${what}: partition ${partition} has no answer`)
        }
        if (result.error === undefined) {
          results.set(partition, { partition, offset: result.offset, timestamp: result.timestamp })
          continue
        }
        failure = new EastGuardError(result.error, `${what}, partition ${partition}`)
        if (!failure.retriable) throw failure
        again.push(partition)
      }
    }
    if (failure === undefined) return results
    const restMs = backoff.next()
    if (ports.clock.monotonic() + restMs >= deadline.atMs) throw outOfTime(what, failure)
    await pause(ports.clock, restMs, deadline.signal)
    cluster.forgetRoute(route)
    route = await cluster.route(name, deadline, route)
    left = again
  }
}

/** Partitions grouped by the broker that leads them. */
export function byLeader(
  route: TopicRoute,
  partitions: readonly number[],
): Map<Address | undefined, number[]> {
  const groups = new Map<Address | undefined, number[]>()
  for (const partition of partitions) {
    const { leader } = routeTo(route, partition)
    const group = groups.get(leader)
    if (group === undefined) groups.set(leader, [partition])
    else group.push(partition)
  }
  return groups
}

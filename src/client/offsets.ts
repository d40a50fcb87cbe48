// Asking the leaders of a topic's partitions where things are: the start, the end, the first record at or after a time.

import { Backoff } from '../base/backoff.ts'
import { EastGuardError, ERRORS, type ErrorCode } from '../base/errors.ts'
import type { Address } from '../ports/streams.ts'
import { AT_EARLIEST, AT_LATEST, listOffsets } from '../wire/native/list-offsets.ts'
import type { OffsetAt, PartitionOffset } from './api.ts'
import { type Cluster, outOfTime } from './cluster.ts'
import { addressName, routeTo, type TopicRoute } from './route.ts'
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

export interface LogRange {
  readonly earliest: number
  readonly latest: number
}

/** Where the log begins and ends, as its leader knows it. */
export async function logRange(
  cluster: Cluster,
  topic: TopicRoute,
  partition: number,
  deadline: Deadline,
): Promise<LogRange> {
  const [earliest = -1, latest = -1] = await Promise.all(
    (['earliest', 'latest'] as const).map(async (at) => {
      const [place] = await offsetsAt(cluster, topic, [partition], at, deadline)
      return place?.offset ?? -1
    }),
  )
  return { earliest, latest }
}

/** An offset that is before the start or past the end, told with both. */
export function outOfRange(
  topic: string,
  partition: number,
  offset: number,
  { earliest, latest }: LogRange,
): EastGuardError {
  return new EastGuardError(
    'OFFSET_OUT_OF_RANGE',
    `'${topic}', partition ${partition} has no offset ${offset}: earliest is ${earliest}, latest is ${latest}`,
    { detail: { topic, partition, offset, earliest, latest } },
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
  const sentTo = new Map<number, Address>()
  for (;;) {
    const groups = [...byLeader(route, left, sentTo)]
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
        failure = failureOf(result.error, `${what}, partition ${partition}`)
        if (!failure.retriable) throw failure
        if (result.error === 'NOT_LEADER') cluster.denyRoute(route)
        const address = result.redirect?.brokers[0]?.address
        // Who is sent to the very broker that refused it is told nothing.
        if (address === undefined || isSame(address, groups[i]?.[0])) sentTo.delete(partition)
        else sentTo.set(partition, address)
        again.push(partition)
      }
    }
    if (failure === undefined) return results
    const restMs = backoff.next()
    if (ports.clock.monotonic() + restMs >= deadline.atMs) throw outOfTime(what, failure)
    await pause(ports.clock, restMs, deadline.signal)
    cluster.forgetRoute(route)
    route = await cluster.route(name, deadline, route)
    if (route.view.topicId !== topicId) {
      throw new EastGuardError('UNKNOWN_TOPIC', `the topic '${name}' was deleted and made anew`)
    }
    left = again
  }
}

function isSame(a: Address, b: Address | undefined): boolean {
  return b !== undefined && addressName(a) === addressName(b)
}

/** A broker that has not heard of the topic yet is behind: the look-up before the next attempt tells whether it is gone. */
function failureOf(code: ErrorCode, what: string): EastGuardError {
  const message = `${what}: ${ERRORS[code].meaning}`
  const behind = code === 'UNKNOWN_TOPIC' || code === 'UNKNOWN_PARTITION'
  return new EastGuardError(code, message, behind ? { retriable: true } : {})
}

/** Partitions grouped by the broker that leads them, or to which another has sent us. */
function byLeader(
  route: TopicRoute,
  partitions: readonly number[],
  sentTo: ReadonlyMap<number, Address>,
): Map<Address | undefined, number[]> {
  const groups = new Map<Address | undefined, number[]>()
  for (const partition of partitions) {
    const leader = sentTo.get(partition) ?? routeTo(route, partition).leader
    const group = groups.get(leader)
    if (group === undefined) groups.set(leader, [partition])
    else group.push(partition)
  }
  return groups
}

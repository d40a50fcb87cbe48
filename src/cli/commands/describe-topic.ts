// A topic as people and programs are shown it: its policy, the segments of its ranges with who holds them, its offsets.
//
//   replicas   numbers of brokers, the leader first. In sync is who lives and has all of it: of an open segment every replica
//              that lives, since whoever falls behind is taken out by the next roll; of a sealed one, too, unless its last
//              entries are still with others (its tail).

import { EastGuardError } from '../../base/errors.ts'
import type { ClusterInfo } from '../../client/api.ts'
import type { RangeView, SegmentView, TopicView } from '../../model/metadata.ts'
import type { TopicPolicy } from '../../model/policy.ts'
import type { CommandContext } from '../context.ts'
import { plural, showBytesCount, showDuration } from '../output.ts'
import { nameOf, policyJson } from './arguments.ts'

/** Of each range, for people: the newest, and whatever lacks something. */
const SEGMENTS_SHOWN = 5

type Brokers = ReadonlyMap<string, ClusterInfo['brokers'][number]>

export async function describeTopic(context: CommandContext, name: string): Promise<void> {
  const { out, client, call } = context
  const admin = client.admin()
  const topic = await admin.describeTopic(name, call)
  const { brokers: list } = await admin.describeCluster(call)
  const brokers: Brokers = new Map(list.map((broker) => [broker.nodeId, broker]))
  let lost: unknown
  const ends = await admin.listOffsets(name, 'latest', call).catch((error: unknown) => {
    // Any broker knows the topic, and only some its records.
    if (out.json || !(error instanceof EastGuardError) || !error.retriable) throw error
    lost = error
    return []
  })
  const partitions = ends.map(({ partition, offset }) => ({
    partition,
    start: topic.logStartOffsets[partition] ?? 0,
    end: offset,
  }))
  if (out.json) {
    await out.document({ ...topicJson(topic, brokers), offsets: partitions })
    return
  }
  await out.line(`${name}  ${topic.topicId}  created ${new Date(topic.createdAtMs).toISOString()}`)
  await out.table(['policy', 'value'], policyRows(topic.policy))
  await showRanges(context, topic, brokers)
  if (lost !== undefined) throw outOfReach(name, lost)
  const used = partitions.filter(({ end }) => end > 0)
  if (used.length === 0) await out.line('no records yet')
  else {
    await out.table(
      ['partition', 'start', 'end', 'records'],
      used.map(({ partition, start, end }) => [partition, start, end, end - start]),
    )
  }
}

async function showRanges(
  { out }: CommandContext,
  { ranges, policy }: TopicView,
  brokers: Brokers,
): Promise<void> {
  await out.table(
    ['range', 'state', 'partitions', 'segments', 'leader'],
    ranges.map((range) => {
      const last = range.segments.at(-1)
      const [leader] = last?.state === 'open' ? last.replicas : []
      return [
        range.range,
        range.state,
        `${range.firstPartition}..${range.endPartition - 1}`,
        range.segments.length,
        leader === undefined ? '-' : numberOf(leader, brokers),
      ]
    }),
  )
  const copies = policy.replicationFactor
  const shown = ranges.flatMap((range) => shownOf(range, copies, brokers))
  const left = ranges.reduce((sum, { segments }) => sum + segments.length, 0) - shown.length
  const rows = shown.map(({ range, segment }) => [
    range.range,
    segment.segment,
    stateOf(segment, copies, brokers),
    segment.endEntry ?? segment.held?.entries ?? '-',
    segment.held === undefined ? '-' : showBytesCount(segment.held.bytes),
    replicasOf(segment, brokers),
  ])
  await out.table(['range', 'segment', 'state', 'entries', 'bytes', 'replicas'], rows)
  if (rows.some((row) => String(row.at(-1)).includes('('))) {
    await out.line('replicas in parentheses are not in sync')
  }
  if (left > 0) await out.line(`${plural(left, 'older segment')} not shown; --json has all`)
}

function shownOf(
  range: RangeView,
  copies: number,
  brokers: Brokers,
): readonly { readonly range: RangeView; readonly segment: SegmentView }[] {
  const { segments } = range
  return segments
    .filter(
      (segment, at) =>
        at >= segments.length - SEGMENTS_SHOWN ||
        isSettling(segment) ||
        inSync(segment, brokers).length < copies,
    )
    .map((segment) => ({ range, segment }))
}

function stateOf(segment: SegmentView, copies: number, brokers: Brokers): string {
  const state = isSettling(segment) ? 'settling' : segment.state
  const count = inSync(segment, brokers).length
  return count < copies ? `${state}, ${count} of ${plural(copies, 'replica')}` : state
}

/** Its replicas are being compared, or completed. One alone has nothing to be compared with. */
function isSettling({ state, digest = '', tail, replicas }: SegmentView): boolean {
  return state === 'sealed' && digest === '' && (tail !== undefined || replicas.length > 1)
}

function inSync({ replicas, tail }: SegmentView, brokers: Brokers): readonly string[] {
  if (tail !== undefined) return []
  return replicas.filter((node) => brokers.get(node)?.state === 'alive')
}

function replicasOf(segment: SegmentView, brokers: Brokers): string {
  const good = inSync(segment, brokers)
  return segment.replicas
    .map((node) => (good.includes(node) ? numberOf(node, brokers) : `(${numberOf(node, brokers)})`))
    .join(' ')
}

/** As describe-cluster shows it; the beginning of its id for one that is not known any more. */
function numberOf(node: string, brokers: Brokers): string {
  const number = brokers.get(node)?.nodeNumber ?? 0
  return number > 0 ? String(number) : node.slice(0, 8)
}

function outOfReach(name: string, cause: unknown): EastGuardError {
  return new EastGuardError(
    'CONNECTION_FAILED',
    `the brokers that lead '${name}' cannot be reached, or not all of them, so its offsets are not known`,
    { cause, hint: 'describe-cluster shows which brokers are missing' },
  )
}

function policyRows(policy: TopicPolicy): [string, string | number][] {
  return Object.entries(policy).map(([key, value]) => {
    if (value === -1) return [nameOf(key), 'no limit']
    if (key.endsWith('Ms')) return [nameOf(key), showDuration(value)]
    if (key.endsWith('Bytes')) return [nameOf(key), showBytesCount(value)]
    return [nameOf(key), String(value)]
  })
}

interface SegmentJson {
  readonly [key: string]: string | number | boolean | string[] | null
}

export function topicJson(
  topic: TopicView,
  brokers?: Brokers,
): {
  readonly topic: string
  readonly topic_id: string
  readonly created_at_ms: number
  readonly version: number
  readonly policy: { readonly [key: string]: string | number }
  readonly ranges: {
    readonly range: number
    readonly state: string
    readonly first_partition: number
    readonly end_partition: number
    readonly segments: SegmentJson[]
  }[]
} {
  return {
    topic: topic.name,
    topic_id: topic.topicId,
    created_at_ms: topic.createdAtMs,
    version: topic.version,
    policy: policyJson(topic.policy),
    ranges: topic.ranges.map((range) => ({
      range: range.range,
      state: range.state,
      first_partition: range.firstPartition,
      end_partition: range.endPartition,
      segments: range.segments.map((segment) => segmentJson(segment, brokers)),
    })),
  }
}

function segmentJson(segment: SegmentView, brokers: Brokers | undefined): SegmentJson {
  const { digest = '', held, endEntry } = segment
  return {
    segment: segment.segment,
    state: segment.state,
    replicas: [...segment.replicas],
    opened_at_ms: segment.openedAtMs,
    end_entry: endEntry ?? null,
    settled: digest !== '',
    digest: digest === '' ? null : digest,
    // Only the broker that answers knows these, and of itself.
    held_entries: held?.entries ?? null,
    held_bytes: held?.bytes ?? null,
    ...(brokers !== undefined && { in_sync: [...inSync(segment, brokers)] }),
  }
}

// Which ranges lack something: from the metadata, which every broker has, and who lives; and from what this broker cannot help
// as a coordinator.
//
//   unavailable        nothing can be written: no replica of the open segment lives, or one is missing and too few brokers are
//                      there for a successor
//   under-replicated   some segment of it has fewer replicas that live than the topic's replication factor

import { openOf } from '../core/metadata/lookup.ts'
import type { MetadataView, Range, Segment, Topic } from '../core/metadata/types.ts'
import type { NodeId } from '../model/ids.ts'
import type { RangeIssue } from '../model/metadata.ts'
import type { RangeTrouble } from './coordinator/types.ts'

export interface Health {
  readonly underReplicated: number
  readonly unavailable: number
  /** Some of them, the unavailable first. */
  readonly issues: readonly RangeIssue[]
}

export interface Living {
  alive(node: NodeId): boolean
  /** How many brokers could be given a segment. */
  readonly usable: number
}

const ISSUES_MAX = 20

export function healthOf(
  { topics }: MetadataView,
  living: Living,
  troubles: readonly RangeTrouble[],
): Health {
  const troubled = byRange(troubles)
  const unavailable: RangeIssue[] = []
  const few: RangeIssue[] = []
  const counts = { unavailable: 0, few: 0 }
  for (const topic of topics.values()) {
    for (const range of topic.ranges) {
      const trouble = troubled.get(`${topic.topicId}/${range.range}`)
      const issue = issueOf(topic, range, living, trouble)
      if (issue === undefined) continue
      const [list, count] =
        issue.kind === 'unavailable' ? [unavailable, ++counts.unavailable] : [few, ++counts.few]
      if (count <= ISSUES_MAX) list.push(issue)
    }
  }
  return {
    unavailable: counts.unavailable,
    underReplicated: counts.few,
    issues: [...unavailable, ...few].slice(0, ISSUES_MAX),
  }
}

/** Of the open segment of a range, and of sealed ones, there may be several. */
function byRange(troubles: readonly RangeTrouble[]): ReadonlyMap<string, readonly RangeTrouble[]> {
  const all = new Map<string, RangeTrouble[]>()
  for (const trouble of troubles) {
    const text = `${trouble.key.topicId}/${trouble.key.range}`
    const some = all.get(text)
    if (some === undefined) all.set(text, [trouble])
    else some.push(trouble)
  }
  return all
}

function issueOf(
  topic: Topic,
  range: Range,
  living: Living,
  troubles: readonly RangeTrouble[] = [],
): RangeIssue | undefined {
  const at = { topic: topic.name, range: range.range }
  const open = openOf(range)
  const ofOpen = troubles.find(({ key }) => key.segment === open?.segment)
  // Records that cannot be read, or not be believed: worse than that some copies are missing.
  const ofSealed = troubles.find(({ key }) => key.segment !== open?.segment)
  if (open !== undefined) {
    const why = whyUnavailable(topic, open, living, ofOpen)
    if (why !== undefined) return { ...at, segment: open.segment, kind: 'unavailable', why }
  }
  if (ofSealed !== undefined) {
    return { ...at, segment: ofSealed.key.segment, kind: 'under-replicated', why: ofSealed.text }
  }
  const { replicationFactor } = topic.policy
  for (const { segment, replicas } of replicaSetsOf(range)) {
    const count = replicas.filter((node) => living.alive(node)).length
    if (count >= replicationFactor) continue
    const why = `${count} of ${replicationFactor} replicas are there`
    return { ...at, segment, kind: 'under-replicated', why }
  }
  if (ofOpen === undefined) return undefined
  return { ...at, segment: ofOpen.key.segment, kind: 'under-replicated', why: ofOpen.text }
}

function whyUnavailable(
  { policy }: Topic,
  { replicas }: Segment,
  living: Living,
  trouble: RangeTrouble | undefined,
): string | undefined {
  const there = replicas.filter((node) => living.alive(node)).length
  if (there === 0) return 'no broker that holds it is alive'
  if (trouble?.stuck === true) return trouble.text
  if (there === replicas.length) return undefined
  if (living.usable < policy.minInsyncReplicas) {
    return `a broker that holds it is missing, and ${living.usable} of at least ${policy.minInsyncReplicas} brokers are there to go on`
  }
  return trouble?.text
}

/** By the first segment that has it. Mostly the same brokers hold all of a range, and ranges are many. */
type ReplicaSets = readonly Pick<Segment, 'segment' | 'replicas'>[]
const SETS = new WeakMap<Range, ReplicaSets>()

function replicaSetsOf(range: Range): ReplicaSets {
  let sets = SETS.get(range)
  if (sets === undefined) {
    const byNodes = new Map<string, Segment>()
    for (const segment of range.segments) {
      const nodes = segment.replicas.toSorted().join()
      if (!byNodes.has(nodes)) byNodes.set(nodes, segment)
    }
    sets = [...byNodes.values()]
    SETS.set(range, sets)
  }
  return sets
}

// Where records are, as the cluster says: who leads, who follows, and whether each segment has all the replicas that it should,
// which is what every fault must end in.

import type { ClusterInfo } from '../../../src/client/api.ts'
import { EastGuard } from '../../../src/index.ts'
import type { SegmentView, TopicView } from '../../../src/model/metadata.ts'
import type { LocalBroker, LocalCluster } from '../../support/local-cluster.ts'
import { pause } from '../../support/time.ts'

const LOOK_MS = 200

export interface Places {
  readonly info: ClusterInfo
  readonly topics: readonly TopicView[]
}

export async function placesOf(
  cluster: LocalCluster,
  names: readonly string[],
  at: readonly string[] = cluster.seeds,
): Promise<Places> {
  await using client = new EastGuard({ seeds: at })
  const admin = client.admin()
  const info = await admin.describeCluster()
  const topics = await admin.describeTopics(names)
  return { info, topics }
}

/** What keeps it from being well, in sentences; none when it is. */
function unwell({ info, topics }: Places): readonly string[] {
  const reasons: string[] = []
  const there = new Set<string>()
  for (const { nodeId, nodeNumber, state, role } of info.brokers) {
    if (state === 'alive' && role === 'member') there.add(nodeId)
    else if (role === 'member') reasons.push(`broker ${nodeNumber} is ${state}`)
  }
  if (info.shardsLed < info.shards) reasons.push(`${info.shards - info.shardsLed} shards unled`)
  if (info.unavailable + info.underReplicated > 0) {
    reasons.push(...info.issues.map(({ topic, kind, why }) => `${topic} is ${kind}: ${why}`))
  }
  for (const { name, policy, ranges } of topics) {
    for (const { segments } of ranges) {
      for (const segment of segments) {
        const what = missing(segment, policy.replicationFactor, there)
        if (what !== undefined) reasons.push(`${name} segment ${segment.segment} ${what}`)
      }
    }
  }
  return reasons
}

function missing(
  segment: SegmentView,
  factor: number,
  there: ReadonlySet<string>,
): string | undefined {
  const { state, replicas, digest } = segment
  if (replicas.some((node) => !there.has(node))) return `(${state}) has a replica that is gone`
  if (replicas.length !== factor) return `(${state}) has ${replicas.length} replicas`
  if (state === 'sealed' && (digest ?? '') === '') return 'is not settled'
  return undefined
}

/** Resolves with the places when all is well, and with what was the last to become so; rejects with what is not. */
export async function untilWell(
  cluster: LocalCluster,
  names: readonly string[],
  withinMs: number,
): Promise<Places & { readonly last: string }> {
  const deadline = performance.now() + withinMs
  for (let last = ''; ; ) {
    const places = await placesOf(cluster, names)
    const reasons = unwell(places)
    if (reasons.length === 0) return { ...places, last }
    last = reasons[0] ?? ''
    if (performance.now() > deadline) {
      throw new Error(`not well within ${withinMs} ms: ${reasons.slice(0, 8).join('; ')}`)
    }
    await pause(LOOK_MS)
  }
}

/** The broker of this node id; undefined: none of those that run. */
function brokerOf(cluster: LocalCluster, info: ClusterInfo, node: string): LocalBroker | undefined {
  const found = info.brokers.find(({ nodeId, state }) => nodeId === node && state === 'alive')
  return cluster.brokers.find(({ name }) => name === found?.displayName)
}

/** The replicas of a topic's open segment, the leader first. */
export async function replicasOf(
  cluster: LocalCluster,
  topic: string,
): Promise<readonly LocalBroker[]> {
  const { info, topics } = await placesOf(cluster, [topic])
  const open = topics[0]?.ranges[0]?.segments.at(-1)
  const found = (open?.replicas ?? []).flatMap((node) => brokerOf(cluster, info, node) ?? [])
  if (found.length < 2) throw new Error(`${topic} has ${found.length} replicas that live`)
  return found
}

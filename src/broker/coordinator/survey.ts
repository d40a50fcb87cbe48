// Which open segments of a topic should be seen to. Asked when something has changed: the brokers, a lease, the topic itself, or
// who coordinates it; never of all topics by the clock.

import type { Topic } from '../../core/metadata/types.ts'
import type { NodeId } from '../../model/ids.ts'

export interface SurveyFacts {
  alive(node: NodeId): boolean
  /** It is drained or removed. */
  leaving(node: NodeId): boolean
  /** It has not asked for its lease for too long. */
  lapsed(leader: NodeId): boolean
  /** How many brokers may be given a segment. */
  readonly healthy: number
}

export interface Unwell {
  readonly range: number
  /** Producers may wait already. */
  readonly urgent: boolean
}

export function survey(topic: Topic, facts: SurveyFacts): readonly Unwell[] {
  const unwell: Unwell[] = []
  const wanted = Math.min(topic.policy.replicationFactor, facts.healthy)
  for (const { range, segments } of topic.active) {
    const replicas = segments.at(-1)?.replicas ?? []
    const [leader] = replicas
    if (leader === undefined) continue
    const urgent = facts.lapsed(leader) || !facts.alive(leader)
    const lost = replicas.some((node) => !facts.alive(node) || facts.leaving(node))
    if (urgent || lost || replicas.length < wanted) unwell.push({ range, urgent })
  }
  return unwell
}

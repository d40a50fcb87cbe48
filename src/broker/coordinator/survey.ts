// Which segments of a topic should be seen to. Asked when something has changed: the brokers, a lease, the topic itself, or
// who coordinates it; never of all topics by the clock.

import type { Topic } from '../../core/metadata/types.ts'
import type { NodeId } from '../../model/ids.ts'

export interface SurveyFacts {
  alive(node: NodeId): boolean
  /** It is drained or removed. */
  leaving(node: NodeId): boolean
  /** It is about to stop. */
  stopping(node: NodeId): boolean
  /** It has no room. */
  full(node: NodeId): boolean
  /** It has not asked for its lease for too long. */
  lapsed(leader: NodeId): boolean
  /** It has been away for so long that another should hold what it held. */
  lost(node: NodeId): boolean
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
    const urgent =
      facts.lapsed(leader) ||
      !facts.alive(leader) ||
      replicas.some((node) => facts.stopping(node) || facts.full(node))
    const lost = replicas.some((node) => {
      return !facts.alive(node) || facts.leaving(node)
    })
    if (urgent || lost || replicas.length < wanted) unwell.push({ range, urgent })
  }
  return unwell
}

/** Numbers of sealed segments, by range, that are to be settled or held by others. */
export function surveySealed(
  topic: Topic,
  facts: SurveyFacts,
): readonly { readonly range: number; readonly segment: number }[] {
  const unwell: { range: number; segment: number }[] = []
  const wanted = Math.min(topic.policy.replicationFactor, facts.healthy)
  for (const { range, segments } of topic.ranges) {
    for (const { segment, state, replicas, digest } of segments) {
      if (state !== 'sealed') continue
      const short = replicas.length !== topic.policy.replicationFactor && wanted > replicas.length
      const many = replicas.length > topic.policy.replicationFactor
      const staying = replicas.filter((node) => !facts.leaving(node) && !facts.lost(node))
      // What a lost one had is given to another when there is one.
      const moves =
        replicas.some((node) => facts.leaving(node)) ||
        staying.length < Math.min(replicas.length, wanted)
      // With one away for a moment nothing can be found out yet: its return is a reason to look again.
      const unsettled = digest === '' && replicas.every((node) => facts.alive(node))
      if (short || many || moves || unsettled) unwell.push({ range, segment })
    }
  }
  return unwell
}

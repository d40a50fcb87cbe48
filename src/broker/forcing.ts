// FORCE_END as a broker answers it: the segment that is meant is looked up, and whoever coordinates the topic decides.

import { EastGuardError } from '../base/errors.ts'
import { openOf } from '../core/metadata/lookup.ts'
import type { Topic } from '../core/metadata/types.ts'
import type { NodeId } from '../model/ids.ts'
import { type RedirectBroker, redirectError, SEGMENT_UNKNOWN } from '../model/redirect.ts'
import { type ForceEndRequest, type ForceEndResponse, ONLY_TOLD } from '../wire/native/force-end.ts'
import type { Control } from './replica/types.ts'

/** Throws END_NOT_FORCED, METADATA_UNAVAILABLE, or NOT_LEADER with the broker that coordinates the topic. */
export function forceEnd(
  topic: Topic,
  asked: ForceEndRequest,
  control: Pick<Control, 'forceEnd'>,
  reach: (node: NodeId) => readonly RedirectBroker[],
): ForceEndResponse {
  const { range: number, end } = asked
  const range = topic.active.find((one) => one.range === number)
  const segment = range === undefined ? undefined : openOf(range)?.segment
  if (segment === undefined) {
    const message = `topic ${asked.topic} has no active range ${number}`
    throw new EastGuardError('END_NOT_FORCED', message, { hint: 'describe-topic shows its ranges' })
  }
  if (end !== ONLY_TOLD && asked.segment !== segment) {
    const message = `segment ${asked.segment} of range ${number} is not the open one: that is ${segment}`
    throw new EastGuardError('END_NOT_FORCED', message)
  }
  const key = { topicId: topic.topicId, range: number, segment }
  const known = control.forceEnd?.(key, end === ONLY_TOLD ? undefined : end)
  if (known !== undefined && 'answers' in known) return { segment, ...known }
  if (known?.coordinator === undefined) {
    const message = `nobody coordinates topic ${topic.name} at the moment`
    throw new EastGuardError('METADATA_UNAVAILABLE', message)
  }
  const message = `topic ${topic.name} is coordinated by node ${known.coordinator}`
  const brokers = reach(known.coordinator)
  throw redirectError('NOT_LEADER', message, { segment: SEGMENT_UNKNOWN, brokers })
}

// Trouble for one range, aimed at what brokers are to it when it strikes. A plan cannot know who leads; it is written as if `b1` led
// the range and b2 and b3 followed, b4 held nothing of it and coordinated it if any such broker does, and b5 held nothing either.
//
// Faults that are drawn one by one seldom meet like this, and each of these is where a rule of PROTOCOLS §5 is needed:
//
//   stuck      a leader whose disk is stuck while its followers' disks are slow: what is in flight when they are fenced
//   deserted   a leader that reaches no follower: what it alone has must be on other disks before the end is
//   unheard    only followers hear the leader, and late: they may not take from it what comes behind a fence
//   lost       all replicas lose their power, and come back one after another
//   unsure     likewise, and the first to come back has damage in its log
//   unfenced   the leader stands still, and the coordinator is not heard by those whom it asks

import type { Prng } from '../../base/prng.ts'
import type { TopicId } from '../../model/ids.ts'
import { shardOfTopic } from '../../model/shards.ts'
import { brokerHost } from '../cluster/step.ts'
import type { Machine } from '../machine.ts'
import { newestSegment } from './ends.ts'
import type { AimedStep, StruckStep } from './step.ts'

export const AIMS = ['stuck', 'deserted', 'unheard', 'lost', 'unsure', 'unfenced'] as const
export type Aim = (typeof AIMS)[number]

const LEADER = 0
const FOLLOWERS = [1, 2] as const
const OTHERS = [3, 4] as const
const REPLICAS = [LEADER, ...FOLLOWERS] as const

export function aimedSteps(chance: Prng, aim: Aim): AimedStep['steps'] {
  const forMs = 2500 + chance.below(5000)
  const cut = (from: number, to: number, afterMs: number = 0): StruckStep => {
    const hosts = { from: brokerHost(from), to: brokerHost(to) }
    return { kind: 'cut', ...hosts, way: 'both', forMs, afterMs }
  }
  const slow = (broker: number, latencyMs: number): StruckStep => {
    return { kind: 'slow-disk', broker, latencyMs, forMs, afterMs: 0 }
  }
  switch (aim) {
    case 'stuck':
      return [
        slow(LEADER, 800 + chance.below(800)),
        ...FOLLOWERS.map((broker) => slow(broker, 100 + chance.below(500))),
      ]
    case 'deserted':
      return [
        ...FOLLOWERS.map((broker) => cut(LEADER, broker, chance.below(50))),
        ...OTHERS.map((broker) => slow(broker, 50 + chance.below(500))),
      ]
    case 'unheard': {
      const from = brokerHost(LEADER)
      const late = { latencyMs: 400 + chance.below(300), bytesPerMs: 200, forMs, afterMs: 0 }
      return [
        ...OTHERS.map((broker) => cut(LEADER, broker)),
        ...FOLLOWERS.map((broker) => {
          return { kind: 'slow-link' as const, from, to: brokerHost(broker), ...late }
        }),
      ]
    }
    case 'lost':
    case 'unsure': {
      const downMs = REPLICAS.map(() => 1 + chance.below(9000))
      const steps: StruckStep[] = []
      if (aim === 'unsure') {
        downMs[LEADER] = 1 + chance.below(300)
        for (const broker of FOLLOWERS) downMs[broker] = 5000 + chance.below(4000)
        const shares = { byte: chance.float(), bit: chance.below(8) }
        steps.push({ kind: 'flip-log', broker: LEADER, ...shares, afterMs: 0 })
      }
      return [...steps, { kind: 'power-cut', brokers: REPLICAS, keep: 'some', downMs, afterMs: 1 }]
    }
    case 'unfenced':
      return [
        { kind: 'pause', broker: LEADER, forMs, timersFirst: chance.below(2) === 0, afterMs: 0 },
        ...FOLLOWERS.flatMap((follower) => OTHERS.map((other) => cut(other, follower))),
      ]
  }
}

/** Brokers by what they are to the range, as at the head of this file; undefined: nobody knows of it now. */
export function brokersByRole(
  machines: readonly Machine[],
  topicId: TopicId,
  rangeShare: number,
): readonly number[] | undefined {
  const ranges = machines.flatMap(({ shards }) => {
    const copy = shards?.copyOf(shardOfTopic(topicId, shards.count))
    return copy?.state.topics.get(topicId)?.active ?? []
  })
  const range = ranges[Math.floor(rangeShare * ranges.length)]
  if (range === undefined) return undefined
  const replicas = newestSegment(machines, topicId, range.firstPartition)?.segment.replicas ?? []
  const rank = ({ nodeId, shards }: Machine): number => {
    const replica = nodeId === undefined ? -1 : replicas.indexOf(nodeId)
    if (replica >= 0) return replica
    const leads =
      shards !== undefined && shards.view(shardOfTopic(topicId, shards.count))?.role === 'leader'
    return leads ? replicas.length : replicas.length + 1
  }
  return machines
    .map((machine, broker) => ({ broker, rank: rank(machine) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ broker }) => broker)
}

/** The step as it is for who these brokers are. */
export function placed(step: StruckStep, brokers: readonly number[]): StruckStep {
  const of = (role: number): number => brokers[role] as number
  switch (step.kind) {
    case 'cut':
    case 'slow-link': {
      const host = (name: string): string =>
        brokerHost(of(brokers.findIndex((_, role) => brokerHost(role) === name)))
      return { ...step, from: host(step.from), to: host(step.to) }
    }
    case 'power-cut':
      return { ...step, brokers: step.brokers.map(of) }
    case 'slow-disk':
    case 'pause':
    case 'flip-log':
      return { ...step, broker: of(step.broker) }
  }
}

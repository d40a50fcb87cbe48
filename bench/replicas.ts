// Which broker does what for a topic, asked of the cluster; and what each broker's processor did meanwhile.

import type { Admin, EastGuard, TopicView } from '../src/index.ts'
import type { BrokerProcess } from '../test/support/broker-process.ts'
import { processorUse, starvedSeconds } from './process.ts'
import type { Measured } from './workload.ts'

/** All replicas of the topic's first active range, the leader first. */
export async function replicasOf(
  { brokers, client }: Measured,
  topic: string,
): Promise<readonly BrokerProcess[]> {
  const admin = client.admin()
  const { brokers: infos } = await admin.describeCluster()
  const open = openSegments(await admin.describeTopic(topic))[0]
  return (open?.replicas ?? []).map((nodeId) => {
    const port = infos.find((info) => info.nodeId === nodeId)?.clientPort
    const broker = brokers.find((one) => one.port === port)
    if (broker === undefined) throw new Error(`no broker that was started is node ${nodeId}`)
    return broker
  })
}

export function openSegments({ ranges }: TopicView): TopicView['ranges'][number]['segments'] {
  return ranges
    .filter(({ state }) => state === 'active')
    .flatMap(({ segments }) => segments.slice(-1))
}

/** How often its segments have been rolled; and the fewest replicas that any segment had. */
export async function rollsOf(
  client: EastGuard,
  topic: string,
): Promise<{ readonly rolls: number; readonly replicasLeast: number }> {
  const admin: Admin = client.admin()
  const { ranges } = await admin.describeTopic(topic)
  const segments = ranges.flatMap((range) => range.segments)
  return {
    rolls: segments.length - ranges.length,
    replicasLeast: Math.min(...segments.map(({ replicas }) => replicas.length)),
  }
}

interface Use {
  readonly seconds: number
  readonly starved: number
}

function useOf({ child }: BrokerProcess): Use {
  return { seconds: processorUse(child.pid).seconds, starved: starvedSeconds(child.pid) }
}

export interface Used {
  /** Processor seconds. */
  readonly seconds: number
  /** Of the time, how much its main thread was ready to run and had no processor. */
  readonly starvedPart: number
}

/** What each of the brokers uses, from `begin` to `end`. */
export class UseMeter {
  used: readonly Used[] = []
  private readonly brokers: readonly BrokerProcess[]
  private before: readonly Use[] = []
  private beganMs = 0

  constructor(brokers: readonly BrokerProcess[]) {
    this.brokers = brokers
  }

  begin(): void {
    this.beganMs = performance.now()
    this.before = this.brokers.map(useOf)
  }

  end(): void {
    const tookSeconds = (performance.now() - this.beganMs) / 1000
    this.used = this.brokers.map(useOf).map(({ seconds, starved }, i) => ({
      seconds: seconds - (this.before[i]?.seconds ?? 0),
      starvedPart: (starved - (this.before[i]?.starved ?? 0)) / tookSeconds,
    }))
  }

  /** Of the one that waited longest, in percent. */
  get starvedPercent(): number {
    return Math.max(0, ...this.used.map(({ starvedPart }) => starvedPart)) * 100
  }
}

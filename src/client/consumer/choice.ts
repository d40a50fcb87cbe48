// Which replica to read a partition from. Near ones first, because what does not leave a rack or a machine costs least:
//
//   same host  >  same rack  >  any other         those that the cluster holds for dead come last
//
// Among equally near ones partitions take turns, so that readers spread over brokers without talking to one another.

import type { Nearness } from '../cluster.ts'
import { addressName, type Replica } from '../route.ts'

/** Best first. The order of `replicas` does not matter, so that all who read from one place choose alike. */
export function byNearness(
  replicas: readonly Replica[],
  near: Nearness,
  partition: number,
): readonly Replica[] {
  const steady = [...replicas].sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1))
  const ranks = new Map<number, Replica[]>()
  for (const replica of steady) {
    const rank = distance(replica, near)
    const equals = ranks.get(rank)
    if (equals === undefined) ranks.set(rank, [replica])
    else equals.push(replica)
  }
  return [...ranks]
    .sort(([a], [b]) => a - b)
    .flatMap(([, equals]) => {
      const first = partition % equals.length
      return [...equals.slice(first), ...equals.slice(0, first)]
    })
}

function distance({ hostLabel, rackLabel, gone }: Replica, near: Nearness): number {
  if (gone) return 3
  if (near.hostLabel !== '' && hostLabel === near.hostLabel) return 0
  return near.rackLabel !== '' && rackLabel === near.rackLabel ? 1 : 2
}

/** Brokers that did not serve a partition lately, by address, and until when others are asked instead. */
export class Avoided {
  private readonly untilMs = new Map<string, number>()

  add(name: string, untilMs: number): void {
    this.untilMs.set(name, untilMs)
  }

  has(replica: Replica, nowMs: number): boolean {
    return (this.untilMs.get(addressName(replica.address)) ?? 0) > nowMs
  }

  clear(): void {
    this.untilMs.clear()
  }
}

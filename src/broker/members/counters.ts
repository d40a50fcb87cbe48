// What the membership looks like from outside: members by state, and how often what was done. core/swim counts; here its
// counts are carried over into metrics.

import type { Swim } from '../../core/swim/swim.ts'
import type { Counters } from '../../core/swim/types.ts'
import type { MemberState } from '../../model/swim.ts'
import type { Counter, Metrics } from '../../ports/metrics.ts'

const COUNTED: readonly (readonly [kept: keyof Counters, name: string, help: string])[] = [
  ['probes', 'probes', 'Probes of other brokers'],
  ['probesFailed', 'failed_probes', 'Probes that nothing came back from'],
  ['suspicions', 'suspicions', 'Brokers that this broker suspected by its own probe'],
  ['refutations', 'refutations', 'Suspicions of this broker that it contradicted'],
  ['syncs', 'syncs', 'Syncs that this broker asked for'],
  ['syncsFailed', 'failed_syncs', 'Syncs that were not answered'],
  ['foreign', 'foreign_packets', 'Packets and syncs of other clusters'],
  ['outdated', 'outdated_packets', 'Packets and syncs of earlier lives of their senders'],
  ['misdirected', 'misdirected_pings', 'Pings that were meant for another broker'],
  ['dropped', 'dropped_news', 'News and requests for which there was no room'],
]

const STATES: readonly (readonly [state: MemberState, help: string])[] = [
  ['alive', 'Other brokers that are there'],
  ['suspect', 'Other brokers that do not answer'],
  ['dead', 'Other brokers that did not answer for long'],
  ['left', 'Other brokers that left'],
]

export class MembersMetrics {
  /** Packets and syncs that no broker writes. */
  readonly malformed: Counter
  /** Packets that no key of this broker opens. */
  readonly unopened: Counter
  private readonly swim: Swim
  private readonly counters: readonly (readonly [keyof Counters, Counter])[]
  private readonly told: Counters

  constructor(metrics: Metrics, swim: Swim) {
    this.swim = swim
    this.told = { ...swim.counters }
    this.malformed = metrics.counter(
      'eastguard_members_malformed_packets_total',
      'Packets and syncs that no broker writes',
    )
    this.unopened = metrics.counter(
      'eastguard_members_unopened_packets_total',
      'Packets that were not sealed with a cluster key of this broker',
    )
    this.counters = COUNTED.map(([kept, name, help]) => [
      kept,
      metrics.counter(`eastguard_members_${name}_total`, help),
    ])
    for (const [state, help] of STATES) {
      metrics.gauge(`eastguard_members_${state}`, help, () => this.count(state))
    }
  }

  private count(state: MemberState): number {
    let count = 0
    for (const { member } of this.swim.table.all()) if (member.state === state) count++
    return count
  }

  update(): void {
    const { told, swim } = this
    for (const [kept, counter] of this.counters) {
      const more = swim.counters[kept] - told[kept]
      if (more === 0) continue
      counter.add(more)
      told[kept] += more
    }
  }
}

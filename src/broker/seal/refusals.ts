// What is said to, and of, those who have no cluster key, or another one. Both sides log it, and one of them is to be
// changed: so the sentence says what has to hold, for whoever reads it.

import type { Log } from '../../ports/log.ts'
import type { Counter, Metrics } from '../../ports/metrics.ts'
import type { Address } from '../../ports/streams.ts'
import type { HelloRefusal } from '../../wire/peer/hello.ts'

const SAME = 'all brokers of a cluster need the same cluster_key, or cluster_key_file'

export const KEY_NEEDED: HelloRefusal = {
  reason: 'key-needed',
  text: `a broker that has no cluster key speaks to one that has: ${SAME}`,
}
export const NO_KEY: HelloRefusal = {
  reason: 'no-key',
  text: `a broker that has a cluster key speaks to one that has none: ${SAME}`,
}
export const OTHER_KEY: HelloRefusal = {
  reason: 'other-key',
  text: `two brokers have different cluster keys: ${SAME}`,
}

/** Places that are remembered as told of. */
const TOLD_MAX = 256

/** One line for each place and reason, not for each attempt; the attempts are counted. */
export class KeyRefusals {
  private readonly log: Log
  private readonly counter: Counter
  private readonly told = new Set<string>()

  constructor(ports: { readonly log: Log; readonly metrics: Metrics }) {
    this.log = ports.log
    this.counter = ports.metrics.counter(
      'eastguard_cluster_key_refusals_total',
      'Connections that were refused because the other side did not prove that it has the cluster key',
    )
  }

  /** Nobody is answered: what came is not from a broker that has the key, or was changed on its way. */
  tellUnproved(from: Address, why: string): void {
    this.count(
      from,
      'not-proved',
      `the other side does not prove that it has the cluster key: ${why}`,
    )
  }

  tell(from: Address, { reason, text }: HelloRefusal): void {
    this.count(from, reason, text)
  }

  private count(from: Address, reason: string, text: string): void {
    this.counter.add(1)
    const about = `${from.host} ${reason}`
    if (this.told.has(about)) return
    if (this.told.size >= TOLD_MAX) this.told.clear()
    this.told.add(about)
    this.log.warn('a connection to the cluster port is refused', {
      address: from,
      reason,
      why: text,
    })
  }
}

// What a broker's ranges share, made once at its start.

import { reachable } from './describe.ts'
import type { BrokerOptions, BrokerParts } from './options.ts'
import type { RangeContext } from './range/context.ts'
import { HeldBudget, Holding } from './range/held.ts'
import { Ticking } from './range/ticking.ts'
import { Census } from './replica/census.ts'
import { Seals } from './replica/seals.ts'
import type { Sendings } from './replica/sending.ts'
import { StagedBook } from './replica/staged.ts'
import type { Control } from './replica/types.ts'

export interface ContextHooks {
  /** There before anything of it is asked. */
  readonly control: () => Control
  readonly sendings: Sendings
  readonly over: RangeContext['over']
  readonly stored: RangeContext['stored']
  readonly damaged: RangeContext['damaged']
}

export function makeContext(
  options: BrokerOptions,
  { store, metadata, ports }: BrokerParts,
  { control, sendings, over, stored, damaged }: ContextHooks,
): RangeContext {
  const { clock, log, metrics } = ports
  return {
    store,
    metadata,
    clock,
    log,
    nodeId: options.nodeId,
    producerIdExpiryMs: options.producerIdExpiryMs,
    timing: options.segmentTiming,
    hwStaleMs: options.hwStaleMs,
    held: new HeldBudget(options.heldBytesMax),
    holding: new Holding(),
    ticking: new Ticking(clock),
    staged: new StagedBook(),
    census: new Census((topicId) => metadata.shardOf(topicId)),
    seals: new Seals(clock, log),
    hooks: {
      gave: (key, given) => control().hooks.gave(key, given),
      staged: (key, token, report) => control().hooks.staged(key, token, report),
      waits: (key) => control().hooks.waits?.(key),
    },
    sendings,
    parked: new Set(),
    watched: new Set(),
    leased: (key) => control().leased(key),
    reachable: (nodes) => reachable(options, nodes),
    over,
    stored,
    damaged,
    totals: { batches: 0, bytes: 0 },
    counters: {
      rolls: metrics.counter('eastguard_segment_rolls_total', 'Segments sealed and succeeded'),
      endsWithoutFollowers: metrics.counter(
        'eastguard_segment_ends_without_followers_total',
        'Ends that leaders gave because followers had failed',
      ),
      endsTakenBack: metrics.counter(
        'eastguard_segment_ends_taken_back_total',
        'Ends of which nothing became for too long',
      ),
      heldTimeouts: metrics.counter(
        'eastguard_produce_wait_timeouts_total',
        'Produces whose deadline passed while their range was not writable',
      ),
    },
  }
}

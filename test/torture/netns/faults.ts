// How hosts come apart. `leader` leads the segment that is watched; `coordinator` leads the metadata of its topic, and is another
// broker. Each fault lasts until all cuts are mended.
//
//   leader-alone         others ═╪═ leader                            its lease runs out, others go on
//   follower-alone       others ═╪═ a follower                        it is taken out, others go on
//   coordinator-alone    others ═╪═ coordinator                       its shard elects another, others go on
//   from-coordinator     leader ═╪═ coordinator, all else is whole     the lease runs out, the third broker hears both
//   leader-mute          leader ──╪─> others, which it still hears
//   leader-deaf          leader <─╪── others, which still hear it
//   no-records           leader ═╪═ others, data ports only           it has its lease and no followers: another leads
//   all-apart            nobody hears anybody                          nothing may be acknowledged
//   flapping             links come and go, each way by itself

import type { Prng } from '../../../src/base/prng.ts'
import { pause } from '../../support/time.ts'
import type { Host, Hosts } from './hosts.ts'

export const FAULTS = [
  'leader-alone',
  'follower-alone',
  'coordinator-alone',
  'from-coordinator',
  'leader-mute',
  'leader-deaf',
  'no-records',
  'all-apart',
  'flapping',
] as const
export type Fault = (typeof FAULTS)[number]

/** Of all brokers: each has a host of its own. */
export const DATA_PORT = 2923

export interface Roles {
  readonly leader: Host
  readonly coordinator: Host
}

export interface Cut {
  /** It can neither keep its lease nor reach a majority. */
  readonly minority: Host | undefined
  /** What those who reach a majority may be held up for; undefined: there is none. */
  readonly gapMs: number | undefined
}

const LASTS_MS = 14_000
/** A lease, an election, a fence and a roll; and a client that asks the broker that is cut off first, and is answered late. */
const GAP_MS = 10_000
/** Two stagings that the leader waits for, before it is blamed. */
const UNREPLICATED_GAP_MS = 14_000
const FLAP_MS_MAX = 1500

/** Resolves when the links are cut. */
export async function cut(fault: Fault, hosts: Hosts, roles: Roles): Promise<Cut> {
  const { leader, coordinator } = roles
  switch (fault) {
    case 'leader-alone':
      await alone(hosts, leader)
      return { minority: leader, gapMs: GAP_MS }
    case 'follower-alone':
      await alone(hosts, third(hosts, roles))
      return { minority: third(hosts, roles), gapMs: GAP_MS }
    case 'coordinator-alone':
      await alone(hosts, coordinator)
      return { minority: coordinator, gapMs: GAP_MS }
    case 'from-coordinator':
      await hosts.cutBothWays(leader, coordinator)
      return { minority: undefined, gapMs: GAP_MS }
    case 'leader-mute':
      for (const other of hosts.others(leader)) await hosts.cut(leader, other)
      return { minority: leader, gapMs: GAP_MS }
    case 'leader-deaf':
      for (const other of hosts.others(leader)) await hosts.cut(other, leader)
      return { minority: leader, gapMs: GAP_MS }
    case 'no-records':
      for (const other of hosts.others(leader)) {
        await hosts.block(leader, other, DATA_PORT)
        await hosts.block(other, leader, DATA_PORT)
      }
      return { minority: undefined, gapMs: UNREPLICATED_GAP_MS }
    case 'all-apart':
      for (const one of hosts.all) await alone(hosts, one)
      return { minority: leader, gapMs: undefined }
    case 'flapping':
      return { minority: undefined, gapMs: undefined }
  }
}

/** What goes on meanwhile. */
export async function last(fault: Fault, hosts: Hosts, random: Prng): Promise<void> {
  if (fault === 'no-records') return pause(UNREPLICATED_GAP_MS + LASTS_MS - GAP_MS)
  if (fault !== 'flapping') return pause(LASTS_MS)
  const untilMs = performance.now() + LASTS_MS
  while (performance.now() < untilMs) {
    const from = hosts.all[random.below(hosts.all.length)]
    const others = from === undefined ? [] : hosts.others(from)
    const to = others[random.below(others.length)]
    if (from === undefined || to === undefined) return
    if (hosts.isCut(from, to)) await hosts.mend(from, to)
    else await hosts.cut(from, to)
    await pause(random.below(FLAP_MS_MAX))
  }
}

async function alone(hosts: Hosts, host: Host): Promise<void> {
  for (const other of hosts.others(host)) await hosts.cutBothWays(host, other)
}

function third(hosts: Hosts, { leader, coordinator }: Roles): Host {
  const found = hosts.all.find((host) => host !== leader && host !== coordinator)
  if (found === undefined) throw new Error('there is no third host')
  return found
}

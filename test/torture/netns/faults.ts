// How hosts come apart. `leader` leads the segment that is watched; `coordinator` leads the metadata of its topic, and is another
// broker. Each fault lasts until all cuts are mended.
//
//   leader-alone         others ═╪═ leader                            its lease runs out, others go on
//   follower-alone       others ═╪═ a follower                        it is taken out, others go on
//   coordinator-alone    others ═╪═ coordinator                       its shard elects another, others go on
//   from-coordinator     leader ═╪═ coordinator, all else is whole     the lease runs out, the third broker hears both
//   leader-mute          leader ──╪─> others, which it still hears
//   leader-deaf          leader <─╪── others, which still hear it
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
  'all-apart',
  'flapping',
] as const
export type Fault = (typeof FAULTS)[number]

export interface Roles {
  readonly leader: Host
  readonly coordinator: Host
}

export interface Cut {
  /** It can neither keep its lease nor reach a majority. */
  readonly minority: Host | undefined
  /** Some majority goes on. */
  readonly majority: boolean
}

const LASTS_MS = 8000
const FLAP_MS_MAX = 1500

/** Resolves when the links are cut. */
export async function cut(fault: Fault, hosts: Hosts, roles: Roles): Promise<Cut> {
  const { leader, coordinator } = roles
  switch (fault) {
    case 'leader-alone':
      await alone(hosts, leader)
      return { minority: leader, majority: true }
    case 'follower-alone':
      await alone(hosts, third(hosts, roles))
      return { minority: third(hosts, roles), majority: true }
    case 'coordinator-alone':
      await alone(hosts, coordinator)
      return { minority: coordinator, majority: true }
    case 'from-coordinator':
      await hosts.cutBothWays(leader, coordinator)
      return { minority: undefined, majority: true }
    case 'leader-mute':
      for (const other of hosts.others(leader)) await hosts.cut(leader, other)
      return { minority: leader, majority: true }
    case 'leader-deaf':
      for (const other of hosts.others(leader)) await hosts.cut(other, leader)
      return { minority: leader, majority: true }
    case 'all-apart':
      for (const one of hosts.all) await alone(hosts, one)
      return { minority: leader, majority: false }
    case 'flapping':
      return { minority: undefined, majority: false }
  }
}

/** What goes on meanwhile. */
export async function last(fault: Fault, hosts: Hosts, random: Prng): Promise<void> {
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

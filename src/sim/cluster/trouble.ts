// One piece of trouble of a plan, as its seed draws it. Times and places are drawn unevenly: faults that end before anyone
// notices, faults longer than every time-out, and two at once are all wanted.

import type { Prng } from '../../base/prng.ts'
import { brokerHost, type Hosts, SHARDS, type Step } from './step.ts'

export type Trouble = Exclude<Step['kind'], 'copy'>

/** `afterMs`: so long after the first step of the same trouble. */
export type DrawnStep = Step & { readonly afterMs?: number }

const DAY_MS = 24 * 3600 * 1000
const PREFIXES = ['wal', 'journal', 'topics', ''] as const

/** `loser`: the one broker whose disk may be lost; undefined when there are too few for that. */
export function trouble(
  chance: Prng,
  kind: Trouble,
  hosts: Hosts,
  loser: number | undefined,
): readonly DrawnStep[] {
  const place = places(chance, hosts)
  const broker = chance.below(hosts.brokers)
  const forMs = duration(chance)
  const downMs = 1 + chance.below(chance.below(4) === 0 ? 10_000 : 500)
  switch (kind) {
    case 'partition':
      return [{ kind, side: place.side(), way: place.way(), forMs }]
    case 'cut': {
      const [from, to] = place.pair()
      return [{ kind, from, to, way: chance.below(2) === 0 ? 'both' : 'one', forMs }]
    }
    case 'slow-link': {
      const [from, to] = place.pair()
      const latencyMs = 1 + chance.below(chance.below(2) === 0 ? 50 : 1000)
      return [{ kind, from, to, latencyMs, bytesPerMs: 1 + chance.below(200), forMs }]
    }
    case 'lossy-link': {
      const [from, to] = place.pair()
      const share = (): number => (chance.below(2) === 0 ? 0 : chance.float() / 2)
      const shares = { lost: share(), doubled: share(), late: 0.01 + chance.float() / 2 }
      return [{ kind, from, to, ...shares, lateMs: 1 + chance.below(300), forMs }]
    }
    case 'reset':
      return [{ kind, host: place.any() }]
    case 'reset-after': {
      const bytes = 1 + chance.below(chance.below(2) === 0 ? 40 : 2000)
      return [{ kind, to: place.any(), peer: chance.float(), bytes }]
    }
    case 'half-open':
      return [{ kind, gone: place.any(), peer: chance.float() }]
    case 'pause':
      return [{ kind, broker, forMs, timersFirst: chance.below(2) === 0 }]
    case 'power-cut': {
      const all = Array.from({ length: hosts.brokers }, (_, i) => i)
      const hit =
        chance.below(3) === 0 ? all : all.filter((i) => i === broker || chance.below(3) === 0)
      return [
        {
          kind,
          brokers: hit,
          keep: chance.below(3) === 0 ? 'none' : 'some',
          downMs: hit.map(() => 1 + chance.below(downMs)),
        },
      ]
    }
    case 'crash-at-operation':
      return [
        {
          kind,
          broker,
          operations: 1 + chance.below(chance.below(2) === 0 ? 20 : 200),
          keep: (['all', 'some', 'none'] as const)[chance.below(3)] ?? 'some',
          downMs,
        },
      ]
    case 'kill':
    case 'stop':
      return [{ kind, broker, downMs }]
    case 'wall':
      return [{ kind, broker, byMs: (chance.below(60) - 30) * DAY_MS }]
    case 'slow-disk':
      return [{ kind, broker, latencyMs: 5 + chance.below(200), forMs }]
    case 'fail-disk':
      return [
        {
          kind,
          broker,
          operation: chance.below(2) === 0 ? 'sync' : 'write',
          prefix: PREFIXES[chance.below(PREFIXES.length)] as string,
        },
      ]
    case 'wipe':
      return loser === undefined ? [] : [{ kind, broker: loser, downMs }]
    case 'restore':
      return [
        { kind: 'copy', broker },
        { kind, broker, downMs, afterMs: 1 + chance.below(15_000) },
      ]
    case 'move':
    case 'hand-over':
      return [{ kind, shard: chance.below(SHARDS), broker }]
  }
}

function duration(chance: Prng): number {
  const longest = [300, 2000, 10_000, 30_000][chance.below(4)] ?? 2000
  return 1 + chance.below(longest)
}

interface Places {
  any(): string
  pair(): readonly [string, string]
  side(): readonly string[]
  way(): 'both' | 'out' | 'in'
}

/** Among brokers more often than between a broker and a client; never between clients, who do not speak to one another. */
function places(chance: Prng, { brokers, clients }: Hosts): Places {
  const broker = (): string => brokerHost(chance.below(brokers))
  const client = (): string => clients[chance.below(clients.length)] as string
  const pair = (): readonly [string, string] => {
    const one = broker()
    const other = brokers > 1 && chance.below(3) > 0 ? broker() : client()
    if (one === other) return pair()
    return chance.below(2) === 0 ? [one, other] : [other, one]
  }
  return {
    any: () => (chance.below(3) > 0 ? broker() : client()),
    pair,
    side: () => {
      const all = Array.from({ length: brokers }, (_, i) => brokerHost(i))
      // Often exactly one, sometimes any half; clients are on either side.
      const first = broker()
      const few = chance.below(2) === 0
      const inside = all.filter((host) => host === first || (!few && chance.below(2) === 0))
      const share = chance.below(3)
      return [...inside, ...clients.filter(() => share > 0 && chance.below(3) < share)]
    },
    way: () => (['both', 'both', 'out', 'in'] as const)[chance.below(4)] ?? 'both',
  }
}

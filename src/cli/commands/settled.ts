// Has a cluster come to rest? It has when nobody is missing, every shard has a leader, and what is held and led is roughly
// even: then it can bear the loss of a broker, and the next one may be restarted. What keeps it from that is said in sentences.

import type { ClusterInfo } from '../../client/api.ts'
import { plural } from '../output.ts'

/** Of the mean. The ring promises less for few shards than for many, so this only tells the beginning of a move from its end. */
const EVEN_WITHIN = 0.5
/** Shards, where the mean is small. */
const EVEN_LEAST = 2

/** One sentence for each thing that is missing; none when the cluster has settled. */
export function unsettled(info: ClusterInfo): readonly string[] {
  const { brokers, shards, shardsLed, unavailable, underReplicated } = info
  const reasons: string[] = []
  const members = brokers.filter(({ role }) => role === 'member')
  for (const { nodeNumber, state } of members) {
    if (state === 'alive') continue
    reasons.push(`broker ${nodeNumber} ${state === 'left' ? 'was stopped' : `is ${state}`}`)
  }
  for (const { nodeNumber, diskFull } of brokers) {
    if (diskFull) reasons.push(`the disk of broker ${nodeNumber} is full`)
  }
  if (shardsLed < shards) reasons.push(leaderless(shards - shardsLed, shards))
  if (unavailable > 0) reasons.push(`${plural(unavailable, 'range')} cannot be written`)
  if (underReplicated > 0) {
    const have = underReplicated === 1 ? 'has' : 'have'
    reasons.push(`${plural(underReplicated, 'range')} ${have} too few replicas`)
  }
  for (const { nodeNumber, role, shards: held } of brokers) {
    if (role === 'member' || held === 0) continue
    reasons.push(`broker ${nodeNumber} is ${role} and still holds ${plural(held, 'shard')}`)
  }
  const present = members.filter(({ state }) => state === 'alive')
  const held = present.map((broker) => broker.shards)
  const led = present.map((broker) => broker.leads)
  // Copies are made shard by shard: while some have more than others the sum is no multiple.
  const whole = sum(brokers.map((broker) => broker.shards)) % Math.max(1, shards) === 0
  if (!whole || !isEven(held, shards))
    reasons.push(`shards are being moved: brokers hold ${list(held)}`)
  else if (shardsLed === shards && !isEven(led, shards))
    reasons.push(`leadership is being spread: brokers lead ${list(led)}`)
  return reasons
}

export function leaderless(count: number, shards: number): string {
  return `${count} of ${plural(shards, 'shard')} ${count === 1 ? 'has' : 'have'} no leader`
}

function isEven(shares: readonly number[], shards: number): boolean {
  // Some get none.
  if (shards < shares.length * EVEN_LEAST) return true
  const mean = sum(shares) / Math.max(1, shares.length)
  const within = Math.max(EVEN_LEAST, mean * EVEN_WITHIN)
  return shares.every((share) => share > 0 && Math.abs(share - mean) <= within)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function list(numbers: readonly number[]): string {
  return numbers.length === 0 ? 'none' : numbers.join(', ')
}

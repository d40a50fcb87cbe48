// What is still missing once nothing goes wrong any more (I14).

import type { World } from './world.ts'

/** How much each producer must have had acknowledged since. */
const MORE = 5

export function whatIsMissing(world: World, acknowledged: number): string | undefined {
  const { register, brokers, profile, producers, truth } = world
  const segments = register.segments(register.index)
  const open = segments.at(-1)
  if (open === undefined) return 'a segment'
  const able = brokers.filter(({ disk, draining }) => !disk.lost && !draining)
  const want = Math.min(profile.replicationFactor, able.length)
  if (open.replicas.length < want) {
    return `segment ${open.segment} is on ${open.replicas.length} of ${want} brokers`
  }
  const leader = brokers.find(({ id }) => id === open.replicas[0])?.process
  const leading = leader?.leading.get(open.segment)
  if (leading?.machine.mode !== 'open') {
    return `segment ${open.segment} is ${leading?.machine.mode ?? 'led by nobody'}`
  }
  if (leader?.leased(open.segment) !== true) return `segment ${open.segment} has no lease`
  for (const id of open.replicas) {
    const broker = brokers.find((one) => one.id === id)
    if (broker?.draining === true) return `${broker.name} is not drained`
  }
  if (producers.least < acknowledged + MORE) {
    return `only ${producers.least - acknowledged} more batches are acknowledged`
  }
  for (const segment of segments.slice(0, -1)) {
    if (segment.digest === '') return `segment ${segment.segment} is not settled`
    const well = segment.replicas.filter((id) => able.some((one) => one.id === id)).length
    const { length } = segment.replicas
    if (well < want || length > well) {
      return `segment ${segment.segment} is on ${length} brokers, ${well} of ${want} are well`
    }
    const missing = truth.checkWhole(segment.segment, segment.replicas)
    if (missing !== undefined) return `segment ${segment.segment}: ${missing}`
  }
  return undefined
}

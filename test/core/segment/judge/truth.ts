// What must hold, whatever happens (PROTOCOLS §11), kept apart from all that the brokers and coordinators believe.
//
// That nobody accepts or acknowledges behind a seal [I3] is seen here alone.
//
//   visible   the greatest entry of a segment that anyone may have seen acknowledged or read: a high watermark that moves,
//             or a seal, counts at once as both

import type { Segment } from '../../../../src/core/metadata/types.ts'
import type { NodeId } from '../../../../src/model/ids.ts'
import type { Item, Staged } from './disk.ts'
import type { Process } from './process.ts'
import type { World } from './world.ts'

interface Tail {
  readonly node: NodeId
  readonly from: number
  readonly end: number
}

interface Ghost {
  visible: number
  sealedAt: number | undefined
  /** As first written. */
  readonly items: Item[]
  /** Per broker, how much of it was ever durable there: a disk that is lost later did count. */
  readonly durable: Map<NodeId, number>
  readonly tails: Tail[]
  wholeUpTo: number
}

export class Truth {
  readonly violations: string[] = []
  acknowledgedCount = 0
  private readonly world: World
  private readonly ghosts = new Map<number, Ghost>()

  constructor(world: World) {
    this.world = world
  }

  violation(what: string): void {
    this.violations.push(what)
    this.world.say(`VIOLATION: ${what}`)
  }

  private ghost(number: number): Ghost {
    let ghost = this.ghosts.get(number)
    if (ghost === undefined) {
      const durable = new Map<NodeId, number>()
      ghost = { visible: 0, sealedAt: undefined, items: [], durable, tails: [], wholeUpTo: 0 }
      this.ghosts.set(number, ghost)
    }
    return ghost
  }

  // ---- entries

  /** Its leader accepts an entry. */
  appends(process: Process, number: number, entry: number, item: Item): void {
    const { sealedAt } = this.ghost(number)
    if (sealedAt !== undefined) {
      this.violation(
        `I3: ${process.broker.name} accepts entry ${entry} of segment ${number}, which is sealed at ${sealedAt}`,
      )
    }
    this.copies(process, number, entry, item)
  }

  copies(process: Process, number: number, entry: number, item: Item): void {
    const { items } = this.ghost(number)
    const known = items[entry]
    if (known !== undefined && !same(known, item)) {
      const other = this.holderOf(number, entry, item)
      if (other !== undefined) {
        this.violation(
          `I2: entry ${entry} of segment ${number} is ${told(item)} on ${process.broker.name}, and another on ${other}`,
        )
      }
    }
    items[entry] = item
  }

  private holderOf(number: number, entry: number, item: Item): string | undefined {
    for (const { disk, process, name } of this.world.brokers) {
      if (disk.lost) continue
      const kept = disk.segments.get(number)?.items[entry]
      const inMemory = process?.leading.get(number)?.items[entry]
      for (const one of [kept, inMemory]) if (one !== undefined && !same(one, item)) return name
    }
    return undefined
  }

  stored(node: NodeId, number: number, end: number): void {
    const { durable } = this.ghost(number)
    durable.set(node, Math.max(durable.get(node) ?? 0, end))
  }

  storedTail(node: NodeId, { segment, tailFrom, tail }: Omit<Staged, 'boot'>): void {
    this.ghost(segment - 1).tails.push({ node, from: tailFrom, end: tailFrom + tail.length })
  }

  // ---- what is seen

  visible(number: number, end: number, who: string): void {
    const ghost = this.ghost(number)
    const { sealedAt } = ghost
    if (sealedAt !== undefined && end > sealedAt) {
      this.violation(
        `I3, I6: ${who} makes entry ${end - 1} of segment ${number} visible, which is sealed at ${sealedAt}`,
      )
    }
    for (let entry = ghost.visible; entry < end; entry++) {
      const holders = this.holders(ghost, entry)
      if (holders >= this.world.profile.minInsyncReplicas) continue
      this.violation(
        `I7: ${who} makes entry ${entry} of segment ${number} visible, which ${holders} disk(s) have`,
      )
      break
    }
    ghost.visible = Math.max(ghost.visible, end)
  }

  private holders(ghost: Ghost, entry: number): number {
    const nodes = new Set<NodeId>()
    for (const [node, end] of ghost.durable) if (end > entry) nodes.add(node)
    for (const { node, from, end } of ghost.tails) {
      if (from <= entry && entry < end) nodes.add(node)
    }
    return nodes.size
  }

  acknowledged(number: number, entry: number): void {
    this.acknowledgedCount++
    const { visible, sealedAt } = this.ghost(number)
    if (entry >= visible || (sealedAt !== undefined && entry >= sealedAt)) {
      this.violation(`I1: entry ${entry} of segment ${number} is acknowledged, and not committed`)
    }
  }

  reads(number: number, highWatermark: number, who: string): void {
    const { visible } = this.ghost(number)
    if (highWatermark <= visible) return
    this.violation(
      `I5: ${who} serves segment ${number} up to ${highWatermark}, committed are ${visible}`,
    )
  }

  // ---- seals

  sealed(segment: Segment, successor: Segment): void {
    const { segment: number, endEntry: end = 0, firstOffsets } = segment
    const ghost = this.ghost(number)
    if (end < ghost.visible) {
      this.violation(
        `I1, I6: segment ${number} is sealed at ${end}, entry ${ghost.visible - 1} was acknowledged or readable`,
      )
    }
    ghost.sealedAt = end
    this.accepts(number)
    this.visible(number, end, 'its seal')
    const next = [...firstOffsets]
    for (const { partition, sequence } of ghost.items.slice(0, end)) {
      const due = next[partition] ?? 0
      if (sequence !== due) {
        this.violation(
          `I4, I10: segment ${number} has batch ${sequence} of partition ${partition} where ${due} is due`,
        )
      }
      next[partition] = sequence + 1
    }
    const started = successor.firstOffsets.join()
    if (started !== next.join()) {
      this.violation(
        `I4, I10: segment ${successor.segment} begins with offsets ${started}, its predecessor ends with ${next.join()}`,
      )
    }
  }

  /** From now on nobody keeps its tail. */
  settled({ segment: number, replicas, endEntry = 0 }: Segment): void {
    const { durable } = this.ghost(number)
    const whole = replicas.filter((node) => endEntry === 0 || (durable.get(node) ?? 0) >= endEntry)
    if (whole.length >= this.world.profile.minInsyncReplicas) return
    this.violation(`I7: segment ${number} is settled, and whole on ${whole.length} replica(s)`)
  }

  // ---- now and then

  /** Everything visible is on a disk, where it can be read. */
  check(): void {
    for (const [number, ghost] of this.ghosts) {
      if (this.violations.length > 0) return
      this.readable(number, ghost)
      if (ghost.sealedAt !== undefined) this.accepts(number)
    }
  }

  /** Nobody would take what is produced to a segment that is sealed. */
  private accepts(number: number): void {
    for (const { process, paused, name } of this.world.brokers) {
      const leading = process?.leading.get(number)
      if (leading?.machine.mayAppend !== true || paused) continue
      if (process?.leased(number) !== true) continue
      this.violation(`I3: ${name} would accept to segment ${number}, which is sealed`)
    }
  }

  private readable(number: number, { visible, items }: Ghost): void {
    const { brokers } = this.world
    let best = 0
    for (const { disk } of brokers) {
      const kept = disk.lost ? undefined : disk.segments.get(number)
      if (kept !== undefined) best = Math.max(best, kept.items.length)
    }
    for (let entry = best; entry < visible; entry++) {
      const kept = brokers.some(({ disk }) => !disk.lost && hasTail(disk.staged, number, entry))
      if (kept) continue
      this.violation(`I1: entry ${entry} of segment ${number} was visible, and is on no disk`)
      return
    }
    for (const { disk, name } of brokers) {
      const kept = disk.segments.get(number)
      // Once in a while all of it, since it does not change any more.
      const from = Math.max(0, (kept?.items.length ?? 0) - 3)
      for (const [i, item] of (kept?.items ?? []).slice(from, visible).entries()) {
        const known = items[from + i]
        if (known === undefined || same(known, item)) continue
        this.violation(`I2: entry ${from + i} of segment ${number} is another on ${name}`)
        return
      }
    }
  }

  /** All that was acknowledged, whichever replica is asked. */
  checkWhole(number: number, replicas: readonly NodeId[]): string | undefined {
    const { sealedAt, items } = this.ghost(number)
    for (const { id, disk, name } of this.world.brokers) {
      if (!replicas.includes(id) || disk.lost) continue
      const kept = disk.segments.get(number)
      if ((kept?.items.length ?? 0) !== sealedAt) return `${name} has not all of it`
      const bad = kept?.items.findIndex((item, i) => !same(item, items[i] as Item)) ?? -1
      if (bad >= 0) return `entry ${bad} is another on ${name}`
    }
    return undefined
  }
}

function hasTail(staged: ReadonlyMap<string, Staged>, number: number, entry: number): boolean {
  for (const { segment, tailFrom, tail } of staged.values()) {
    if (segment === number + 1 && tailFrom <= entry && entry < tailFrom + tail.length) return true
  }
  return false
}

function same(a: Item, b: Item): boolean {
  return a.partition === b.partition && a.sequence === b.sequence
}

function told({ partition, sequence }: Item): string {
  return `batch ${sequence} of partition ${partition}`
}

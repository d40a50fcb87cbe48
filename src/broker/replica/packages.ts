// Packages on the data port: what a holder stages with the replicas of a successor, sent in parts and stored whole.
//
//   holder ── stage: state, state, ... entries, entries, last ──> replica ── LogStore.stagePackage ──> stage-stored
//
// A link that breaks takes what was sent of a package with it; it is sent again from its beginning. Parts are not acknowledged
// one by one: nothing is known of a package until all of it is durable. However long that takes, it is waited for as long as the
// link takes more of the package than it ever had, and links take turns among packages: large ones keep no small ones waiting.
// A holder that gives a package up says so (stage-dropped), and what came of it goes; so does what came on a link that broke.

import { EastGuardError, messageOf } from '../../base/errors.ts'
import { unseenMs } from '../../core/segment/staging.ts'
import { type Entry, type SegmentPlace, samePlace } from '../../model/entry.ts'
import type { NodeId } from '../../model/ids.ts'
import { MIB } from '../../model/policy.ts'
import { placeOfKey, type SegmentKey } from '../../model/segment-key.ts'
import type { Timer } from '../../ports/clock.ts'
import { encodeEntries, entriesBytes, entryBytes, NO_ENTRIES } from '../../wire/data/entries.ts'
import { stageFrame } from '../../wire/data/load.ts'
import type { Stage, StageDropped, StageStored } from '../../wire/data/types.ts'
import type { DataLinks, Flow } from '../data/types.ts'
import type { RangeContext } from '../range/context.ts'
import { type StagePackage, type StageRoads, storePackage } from './stager.ts'

const PART_BYTES = 256 * 1024
/** Of one package, state and tail. */
const PACKAGE_BYTES_MAX = 256 * MIB
/** Of all packages that a broker takes at a time, until each is on its disk. */
const TAKEN_BYTES_MAX = 320 * MIB
/** Of these, for packages of one part: those that take long never keep them out. */
const FOR_SMALL_BYTES = 64 * MIB
const NO_STATE = new Uint8Array(0)
const NO_FRAMES: readonly Uint8Array[] = []

interface Order {
  readonly node: NodeId
  readonly pack: StagePackage
  readonly flow: Flow
  readonly moved: (bytes: number) => void
  timer: Timer
  /** What has been given to the link. */
  stateAt: number
  tailAt: number
  last: boolean
  bytes: number
  /** What was given to any link at most, and when that grew. */
  farthest: number
  movedMs: number
  readonly settle: (failed: string | undefined) => void
}

/** To others' disks, and to this broker's own. */
export class PackageSender implements StageRoads {
  private readonly context: RangeContext
  private readonly links: DataLinks
  private readonly orders = new Map<number, Order>()
  private lastOrder = 0

  constructor(context: RangeContext, links: DataLinks) {
    this.context = context
    this.links = links
  }

  async store(node: NodeId, pack: StagePackage, moved: (bytes: number) => void): Promise<void> {
    if (node === this.context.nodeId) return await storePackage(this.context, pack)
    const failed = await this.send(node, pack, moved)
    if (failed !== undefined) throw new EastGuardError('NOT_READY', failed)
  }

  giveUp(token: string): void {
    for (const { pack, settle } of this.orders.values()) {
      if (pack.token === token) settle('nobody waits for it any more')
    }
  }

  private send(
    node: NodeId,
    pack: StagePackage,
    moved: (bytes: number) => void,
  ): Promise<string | undefined> {
    const id = ++this.lastOrder
    return new Promise((resolve) => {
      const settle = (failed: string | undefined): void => {
        const order = this.orders.get(id)
        if (order === undefined) return
        this.orders.delete(id)
        order.timer.cancel()
        order.flow.close()
        const begun = order.bytes > 0
        if (failed !== undefined && begun)
          this.links.send(node, { kind: 'stage-dropped', order: id })
        resolve(failed)
      }
      const flow = this.links.flow(node, {
        way: 'out',
        bulk: true,
        fill: (budget) => this.fill(id, budget),
      })
      const { clock, timing } = this.context
      const timer = clock.after(timing.stageTimeoutMs, () => this.look(id))
      this.orders.set(id, {
        node,
        pack,
        flow,
        moved,
        timer,
        stateAt: 0,
        tailAt: 0,
        last: false,
        bytes: 0,
        farthest: 0,
        movedMs: clock.monotonic(),
        settle,
      })
      flow.ready()
    })
  }

  private look(id: number): void {
    const order = this.orders.get(id)
    if (order === undefined) return
    const { clock, timing } = this.context
    const patienceMs = timing.stageTimeoutMs + (order.last ? unseenMs(order.bytes) : 0)
    const leftMs = order.movedMs + patienceMs - clock.monotonic()
    if (leftMs > 0) order.timer = clock.after(leftMs, () => this.look(id))
    else if (order.last) order.settle(`it has not stored what was staged within ${patienceMs} ms`)
    else order.settle(`the link to it has taken nothing of what was staged for ${patienceMs} ms`)
  }

  link(node: NodeId, up: boolean): void {
    for (const order of this.orders.values()) {
      if (order.node !== node) continue
      order.stateAt = 0
      order.tailAt = 0
      order.last = false
      order.bytes = 0
      if (up) order.flow.ready()
    }
  }

  stored(from: NodeId, { order: id, failed }: StageStored): void {
    const order = this.orders.get(id)
    if (order?.node === from) order.settle(failed)
  }

  private fill(id: number, budgetBytes: number): readonly Uint8Array[] {
    const order = this.orders.get(id)
    if (order === undefined || order.last) return NO_FRAMES
    const { pack, stateAt } = order
    const budget = Math.min(budgetBytes, PART_BYTES)
    const state =
      stateAt < pack.state.length ? pack.state.subarray(stateAt, stateAt + budget) : NO_STATE
    order.stateAt += state.length
    const entries =
      order.stateAt < pack.state.length ? [] : nextEntries(order, budget - state.length)
    order.tailAt += entries.length
    order.last = order.stateAt === pack.state.length && order.tailAt === pack.tail.length
    this.given(order, state.length + entriesBytes(entries))
    const { key, token, tailFrom, tail } = pack
    return stageFrame(
      {
        order: id,
        key,
        token,
        tailFrom,
        end: tailFrom + tail.length,
        stateBytes: pack.state.length,
        stateOffset: stateAt,
        state,
        last: order.last,
      },
      entries.length === 0 ? NO_ENTRIES : encodeEntries(placeBefore(key), entries),
    )
  }

  private given(order: Order, bytes: number): void {
    order.bytes += bytes
    const more = order.bytes - order.farthest
    if (more <= 0) return
    order.farthest = order.bytes
    order.movedMs = this.context.clock.monotonic()
    order.moved(more)
  }
}

/** Of the segment whose tail goes along. */
function placeBefore(successor: SegmentKey): SegmentPlace {
  return placeOfKey({ ...successor, segment: successor.segment - 1 })
}

function nextEntries({ pack, tailAt, stateAt }: Order, budget: number): readonly Entry[] {
  let end = tailAt
  let bytes = 0
  while (end < pack.tail.length) {
    bytes += entryBytes(pack.tail[end] as Entry)
    // An entry may be larger than a part: then it is alone in it.
    if (bytes > budget && (end > tailAt || stateAt < pack.state.length)) break
    end++
  }
  return pack.tail.slice(tailAt, end)
}

interface Assembly {
  state: Uint8Array
  stateAt: number
  readonly tail: Entry[]
  /** Counted as taken, of state and tail. */
  bytes: number
  heardMs: number
}

/** What a peer sends on its present connection, by its order. */
type Orders = Map<number, Assembly>

/** Packages from holders elsewhere, into this broker's store. */
export class PackageReceiver {
  private readonly context: RangeContext
  private readonly links: DataLinks
  private readonly peers = new Map<NodeId, Orders>()
  /** On their way here, and from here to the disk. */
  private taken = 0
  /** Those that are on their way to the disk, by token. */
  private readonly storing = new Map<string, Promise<void>>()

  constructor(context: RangeContext, links: DataLinks) {
    this.context = context
    this.links = links
  }

  link(node: NodeId): void {
    for (const { bytes } of this.peers.get(node)?.values() ?? []) this.taken -= bytes
    this.peers.delete(node)
  }

  dropped(from: NodeId, { order }: StageDropped): void {
    const orders = this.peers.get(from)
    if (orders !== undefined) this.drop(orders, order)
  }

  receive(from: NodeId, part: Stage): void {
    const { order } = part
    const orders: Orders = this.peers.get(from) ?? new Map<number, Assembly>()
    this.peers.set(from, orders)
    try {
      const known = orders.get(order)
      // A part of something that was given up.
      if (known === undefined && part.stateOffset > 0) return
      const assembly = known ?? { state: NO_STATE, stateAt: 0, tail: [], bytes: 0, heardMs: 0 }
      orders.set(order, assembly)
      this.take(assembly, part, known === undefined)
      const whole = assemble(assembly, part)
      if (whole === undefined) return
      orders.delete(order)
      this.store(whole, assembly.bytes).then(
        () => this.answer(from, orders, order, undefined),
        (error: unknown) => this.answer(from, orders, order, messageOf(error)),
      )
    } catch (error) {
      this.drop(orders, order)
      this.answer(from, orders, order, messageOf(error))
    }
  }

  private answer(from: NodeId, orders: Orders, order: number, failed: string | undefined): void {
    // Another start of the peer has given its number to another package, of which nothing is stored yet.
    if (this.peers.get(from) !== orders) return
    this.links.send(from, { kind: 'stage-stored', order, failed })
  }

  /** Memory for a part, and with the first one for all of the state; throws, before it is there, when that is too much. */
  private take(assembly: Assembly, { stateBytes, entries, last }: Stage, first: boolean): void {
    const bytes = (first ? stateBytes : 0) + entriesBytes(entries)
    if (assembly.bytes + bytes > PACKAGE_BYTES_MAX) throw tooLarge()
    assembly.heardMs = this.context.clock.monotonic()
    const most = first && last ? TAKEN_BYTES_MAX : TAKEN_BYTES_MAX - FOR_SMALL_BYTES
    if (this.taken + bytes > most) this.dropIdle()
    if (this.taken + bytes > most) throw noRoom(this.taken)
    this.taken += bytes
    assembly.bytes += bytes
    if (first) assembly.state = new Uint8Array(stateBytes)
  }

  /** Its holder would have given it up by now; but word of that is lost when there is no room for it. */
  private dropIdle(): void {
    const sinceMs = this.context.clock.monotonic() - this.context.timing.stageTimeoutMs
    for (const [node, orders] of this.peers) {
      for (const [order, { heardMs }] of orders) {
        if (heardMs >= sinceMs) continue
        this.drop(orders, order)
        this.answer(node, orders, order, 'it has heard nothing more of what was staged')
      }
    }
  }

  private drop(orders: Orders, order: number): void {
    this.taken -= orders.get(order)?.bytes ?? 0
    orders.delete(order)
  }

  private async store(pack: StagePackage, bytes: number): Promise<void> {
    const { key, token } = pack
    try {
      // Sent again after the link broke. Two that write the same file at a time take it from one another.
      if (this.context.staged.has(key, token)) return
      const before = this.storing.get(token)
      if (before !== undefined) return await before
      const stored = storePackage(this.context, pack).finally(() => this.storing.delete(token))
      this.storing.set(token, stored)
      await stored
    } finally {
      this.taken -= bytes
    }
  }
}

/** The whole package, with its last part. */
function assemble(assembly: Assembly, part: Stage): StagePackage | undefined {
  const { stateBytes, stateOffset, state, place, entries, tailFrom } = part
  const known = stateBytes === assembly.state.length
  if (!known || stateOffset !== assembly.stateAt) throw outOfOrder()
  assembly.state.set(state, stateOffset)
  assembly.stateAt += state.length
  if (place !== undefined && !samePlace(place, placeBefore(part.key))) throw outOfOrder()
  for (const entry of entries) {
    if (entry.entryNumber !== tailFrom + assembly.tail.length) throw outOfOrder()
    assembly.tail.push(entry)
  }
  if (!part.last) return undefined
  const { key, token } = part
  const whole = assembly.stateAt === stateBytes && assembly.tail.length === part.end - tailFrom
  if (!whole) throw outOfOrder()
  return { key, token, state: assembly.state, tailFrom, tail: assembly.tail }
}

function outOfOrder(): EastGuardError {
  return new EastGuardError(
    'MALFORMED_REQUEST',
    'parts of what was staged are missing, or of something else',
  )
}

function tooLarge(): EastGuardError {
  const message = `what is to be staged is larger than ${PACKAGE_BYTES_MAX} bytes`
  return new EastGuardError('MALFORMED_REQUEST', message)
}

function noRoom(taken: number): EastGuardError {
  const message = `there is no room for what is to be staged: ${taken} bytes are taken already`
  return new EastGuardError('NOT_READY', message)
}

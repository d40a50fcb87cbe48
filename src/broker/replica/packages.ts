// Packages on the data port: what a holder stages with the replicas of a successor, sent in parts and stored whole.
//
//   holder ── stage: state, state, ... entries, entries, last ──> replica ── LogStore.stagePackage ──> stage-stored
//
// A link that breaks takes what was sent of a package with it; it is sent again from its beginning. Parts are not acknowledged
// one by one: nothing is known of a package until all of it is durable. However long that takes, it is waited for as long as the
// link takes more of the package than it ever had, and links take turns among packages: large ones keep no small ones waiting.

import { EastGuardError, messageOf } from '../../base/errors.ts'
import { unseenMs } from '../../core/segment/staging.ts'
import { type Entry, type SegmentPlace, samePlace } from '../../model/entry.ts'
import type { NodeId } from '../../model/ids.ts'
import { keyText, placeOfKey, type SegmentKey } from '../../model/segment-key.ts'
import type { Timer } from '../../ports/clock.ts'
import { encodeEntries, entriesBytes, entryBytes, NO_ENTRIES } from '../../wire/data/entries.ts'
import { stageFrame } from '../../wire/data/load.ts'
import type { Stage, StageStored } from '../../wire/data/types.ts'
import type { DataLinks, Flow } from '../data/types.ts'
import type { RangeContext } from '../range/context.ts'
import { type StagePackage, type StageRoads, storePackage } from './stager.ts'

const PART_BYTES = 256 * 1024
/** Of one package, state and tail. */
const PACKAGE_BYTES_MAX = 256 * 1024 * 1024
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
  /** Of the successor. */
  readonly segment: string
  readonly state: Uint8Array
  stateAt: number
  readonly tail: Entry[]
  bytes: number
}

/** Packages from holders elsewhere, into this broker's store. */
export class PackageReceiver {
  private readonly context: RangeContext
  private readonly links: DataLinks
  /** By peer, then by its order. */
  private readonly peers = new Map<NodeId, Map<number, Assembly>>()

  constructor(context: RangeContext, links: DataLinks) {
    this.context = context
    this.links = links
  }

  link(node: NodeId): void {
    this.peers.delete(node)
  }

  receive(from: NodeId, part: Stage): void {
    const { order } = part
    const orders = this.peers.get(from) ?? new Map<number, Assembly>()
    this.peers.set(from, orders)
    const answer = (failed: string | undefined): void => {
      // Another start of the peer has given its number to another package, of which nothing is stored yet.
      if (this.peers.get(from) !== orders) return
      this.links.send(from, { kind: 'stage-stored', order, failed })
    }
    try {
      const whole = assemble(orders, part)
      if (whole === undefined) return
      orders.delete(order)
      this.store(whole).then(
        () => answer(undefined),
        (error: unknown) => answer(messageOf(error)),
      )
    } catch (error) {
      orders.delete(order)
      answer(messageOf(error))
    }
  }

  private async store(pack: StagePackage): Promise<void> {
    // The same package by another way, or sent again after the link broke.
    if (this.context.staged.has(pack.key, pack.token)) return
    await storePackage(this.context, pack)
  }
}

/** The whole package, with its last part. */
function assemble(orders: Map<number, Assembly>, part: Stage): StagePackage | undefined {
  const { order, stateOffset, state, place, entries, tailFrom } = part
  let assembly = orders.get(order)
  if (assembly === undefined) {
    // A part of something that was given up.
    if (stateOffset > 0) return undefined
    if (part.stateBytes > PACKAGE_BYTES_MAX) throw tooLarge()
    const segment = keyText(part.key)
    // What was too slow was given up, and nobody says so: it must not pile up here.
    for (const [old, one] of orders) if (one.segment === segment) orders.delete(old)
    const memory = new Uint8Array(part.stateBytes)
    assembly = { segment, state: memory, stateAt: 0, tail: [], bytes: 0 }
    orders.set(order, assembly)
  }
  if (stateOffset !== assembly.stateAt) throw outOfOrder()
  assembly.state.set(state, stateOffset)
  assembly.stateAt += state.length
  if (place !== undefined && !samePlace(place, placeBefore(part.key))) throw outOfOrder()
  for (const entry of entries) {
    if (entry.entryNumber !== tailFrom + assembly.tail.length) throw outOfOrder()
    assembly.tail.push(entry)
    assembly.bytes += entryBytes(entry)
  }
  if (assembly.bytes + part.stateBytes > PACKAGE_BYTES_MAX) throw tooLarge()
  if (!part.last) return undefined
  const { key, token } = part
  const whole = assembly.stateAt === part.stateBytes && assembly.tail.length === part.end - tailFrom
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

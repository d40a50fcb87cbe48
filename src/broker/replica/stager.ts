// The holder's part in a roll: it makes the successor's range state, folded to exactly the end, and the tail, and sees that
// every replica of the successor has both, durable, under the token. A staging costs nothing until it commits: it may fail, be
// given up, or be ordered anew under another token. While it is under way the coordinator is told how much has moved, for that
// alone says whether to wait.
//
//   stage-order ──> fold [committed, end) on a copy of the fold ──> state ─┬─> this broker's own disk
//                   entries [tailFrom, end)                     ──> tail  ─┴─> the others, over the data port
//                                                       all stored ──> staged: next offsets, digest

import { EastGuardError, messageOf } from '../../base/errors.ts'
import { RangeState, stateDigest } from '../../core/producers/range-state.ts'
import { unseenMs } from '../../core/segment/staging.ts'
import type { Entry } from '../../model/entry.ts'
import type { NodeId } from '../../model/ids.ts'
import type { FailedReplica, StageOutcome } from '../../model/segment-ends.ts'
import { keyText, type SegmentKey } from '../../model/segment-key.ts'
import { entriesBytes } from '../../wire/data/entries.ts'
import type { StageOrder as StageOrderMessage } from '../../wire/peer/segments.ts'
import type { RangeContext } from '../range/context.ts'
import type { RangeCopy } from '../range/copy.ts'
import { RangeLeader } from '../range/leader.ts'
import { stagedState } from '../range/load.ts'

export type StageOrder = Omit<StageOrderMessage, 'kind'>

/** What is staged with every replica of a successor. */
export interface StagePackage {
  /** Of the successor. */
  readonly key: SegmentKey
  readonly token: string
  readonly state: Uint8Array
  /** Of the predecessor, from `tailFrom` on. */
  readonly tailFrom: number
  readonly tail: readonly Entry[]
}

/** How packages get to replicas' disks. */
export interface StageRoads {
  /** `moved`: so many bytes more are on their way. Rejects with why it is not stored. */
  store(node: NodeId, pack: StagePackage, moved: (bytes: number) => void): Promise<void>
  /** Nobody waits for the packages under this token any more. */
  giveUp(token: string): void
}

interface Job {
  readonly copy: RangeCopy
  readonly order: StageOrder
  /** Bytes: of the package when there is one, then of all that was given to links. */
  moved: number
  outcome: StageOutcome | undefined
}

export class Stager {
  private readonly context: RangeContext
  private readonly roads: StageRoads
  private readonly jobs = new Map<string, Job>()

  constructor(context: RangeContext, roads: StageRoads) {
    this.context = context
    this.roads = roads
  }

  /** Of the open segment that `copy` is of. */
  stage(copy: RangeCopy, order: StageOrder): void {
    const text = keyText(order.key)
    const running = this.jobs.get(text)
    if (running?.order.token === order.token) return this.report(running)
    this.forget(order.key)
    const job: Job = { copy, order, moved: 0, outcome: undefined }
    this.jobs.set(text, job)
    void this.run(job)
  }

  /** The segment has a successor, or its range has gone. */
  forget(key: SegmentKey): void {
    const text = keyText(key)
    const job = this.jobs.get(text)
    this.jobs.delete(text)
    if (job !== undefined) this.roads.giveUp(job.order.token)
  }

  private report({ order: { key, token }, outcome, moved }: Job): void {
    this.context.hooks.staged(key, token, outcome ?? { moved })
  }

  private async run(job: Job): Promise<void> {
    job.outcome = await this.outcome(job)
    if (this.wanted(job)) this.report(job)
  }

  /** No order under another token has taken its place, and the segment is open here. */
  private wanted(job: Job): boolean {
    return this.jobs.get(keyText(job.order.key)) === job
  }

  /** A leader that waits for its own staging must not take back the end meanwhile. */
  private moved(job: Job, bytes: number): void {
    job.moved += bytes
    const { role } = job.copy
    if (role instanceof RangeLeader) {
      role.segment?.handsOn(this.context.clock.monotonic() + unseenMs(job.moved))
    }
  }

  private async outcome(job: Job): Promise<StageOutcome> {
    const { nodeId, log } = this.context
    const { copy, order } = job
    let pack: StagePackage
    let nextOffsets: readonly number[]
    try {
      const state = await this.fold(copy, order)
      const { token, tailFrom, end } = order
      const tail = await this.entries(order.key, tailFrom, end)
      const key = { ...order.key, segment: order.key.segment + 1 }
      nextOffsets = state.nextOffsets()
      pack = { key, token, state: state.encode(), tailFrom, tail }
    } catch (error) {
      const why = messageOf(error)
      log.warn('a successor could not be staged by this broker', { ...copy.fields, why })
      return { failed: [{ node: nodeId, why }] }
    }
    if (!this.wanted(job)) return { failed: [] }
    this.moved(job, pack.state.length + entriesBytes(pack.tail))
    const moved = (bytes: number): void => this.moved(job, bytes)
    const stored = order.replicas.map((node) => this.storedAt(node, pack, moved))
    const failed = (await Promise.all(stored)).filter((one) => one !== undefined)
    if (failed.length > 0) return { failed }
    return { nextOffsets, stateDigest: stateDigest(pack.state) }
  }

  private async storedAt(
    node: NodeId,
    pack: StagePackage,
    moved: (bytes: number) => void,
  ): Promise<FailedReplica | undefined> {
    try {
      await this.roads.store(node, pack, moved)
      return undefined
    } catch (error) {
      return { node, why: messageOf(error) }
    }
  }

  /** The range state as it is with all entries below the end, and none above. */
  private async fold(copy: RangeCopy, { key, end }: StageOrder): Promise<RangeState> {
    if (copy.status === 'broken' && copy.key.segment === key.segment) {
      return await this.foldDamaged(copy, end)
    }
    await copy.ensureLoaded()
    const { state } = copy
    if (state === undefined || copy.key.segment !== key.segment) {
      throw new EastGuardError('METADATA_CONFLICT', 'the segment has a successor already')
    }
    const committed = state.nextEntry - state.pendingEntries
    if (committed > end || state.nextEntry < end) {
      const what = `${committed} entries are committed here and ${state.nextEntry} are there`
      throw new EastGuardError('METADATA_CONFLICT', `the end is ${end}, but ${what}`)
    }
    const own = RangeState.decode(state.encodeCommitted(), this.context.producerIdExpiryMs)
    own.begin(committed)
    for (const entry of await this.entries(key, committed, end)) own.fold(entry)
    return own
  }

  /** An operator has said where it ends, though nobody is sure that this is all: a damaged copy is the best that there is. */
  private async foldDamaged(copy: RangeCopy, end: number): Promise<RangeState> {
    const { key } = copy
    const state = await stagedState(copy)
    const log = this.context.store.find(key)
    let next = 0
    if (log !== undefined && end > 0) {
      for await (const entries of log.salvage(0)) {
        for (const entry of entries) if (entry.entryNumber < end) state.fold(entry)
        next = (entries.at(-1)?.entryNumber ?? -1) + 1
        if (next >= end) break
      }
    }
    if (next >= end) return state
    const what = `the segment is to end at ${end}, and ${next} entries of it can be read here`
    throw new EastGuardError('METADATA_CONFLICT', what)
  }

  private async entries(key: SegmentKey, from: number, end: number): Promise<readonly Entry[]> {
    const found: Entry[] = []
    if (from >= end) return found
    const log = this.context.store.find(key)
    if (log !== undefined) {
      const here = log.damage === undefined ? log.scan(from) : log.salvage(from)
      for await (const entries of here) {
        for (const entry of entries) if (entry.entryNumber < end) found.push(entry)
        if (found.length >= end - from) break
      }
    }
    if (found.length === end - from) return found
    const what = `entries ${from} to ${end - 1} are wanted, ${found.length} are durable here`
    throw new EastGuardError('METADATA_CONFLICT', what)
  }
}

/** To this broker's own disk, and to no other. */
export function storeHere(context: RangeContext): StageRoads {
  return {
    store: async (node, pack) => {
      if (node === context.nodeId) return await storePackage(context, pack)
      throw new EastGuardError('NOT_READY', 'this broker reaches no other')
    },
    giveUp: () => {},
  }
}

export async function storePackage(context: RangeContext, pack: StagePackage): Promise<void> {
  const { key, token, state, tail: entries } = pack
  const of = { ...key, segment: key.segment - 1 }
  // Whatever becomes of it, something may lie there from now on.
  context.stored(key, token)
  const tail = entries.length === 0 ? {} : { tail: { of, entries } }
  await context.store.stagePackage(key, token, { state, ...tail })
  context.staged.stored(key, token, state)
}

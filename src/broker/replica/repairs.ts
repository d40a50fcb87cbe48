// Sealed segments that should be whole here and are not: missing, short of their end, or damaged. What is missing is copied
// from the other replicas, and the last entries also from those who keep the tail (PROTOCOLS §5).
//
//   topic changed, sealed, inspected ──> looked at ──> not whole ──> copying, two at a time ──> whole
//                                                          ^            │
//                                                          └── later ───┘ nobody had it, or the link broke

import { EastGuardError } from '../../base/errors.ts'
import { rangeByNumber, segmentByNumber } from '../../core/metadata/lookup.ts'
import type { Segment, Topic } from '../../core/metadata/types.ts'
import type { Entry } from '../../model/entry.ts'
import type { NodeId } from '../../model/ids.ts'
import { keyText, type SegmentKey } from '../../model/segment-key.ts'
import type { Timer } from '../../ports/clock.ts'
import type { SegmentLog } from '../../storage/types.ts'
import type { RangeContext } from '../range/context.ts'
import { changedSegments } from '../topics/changed.ts'
import type { FetchClient } from './fetches.ts'
import { isOverruled } from './seals.ts'

const COPIES_MAX = 2
const CHUNK_BYTES = 4 * 1024 * 1024
const RETRY_MS_LEAST = 500
const RETRY_MS_MOST = 30_000

interface Wanted {
  readonly key: SegmentKey
  retryMs: number
  running: boolean
  timer: Timer | undefined
}

export class Repairs {
  private readonly context: RangeContext
  /** Undefined: this broker reaches no other. */
  private readonly fetches: FetchClient | undefined
  private readonly wanted = new Map<string, Wanted>()
  private running = 0
  private stopped = false

  constructor(context: RangeContext, fetches: FetchClient | undefined) {
    this.context = context
    this.fetches = fetches
  }

  get underWay(): number {
    return this.wanted.size
  }

  topicChanged(topic: Topic, before: Topic | undefined): void {
    const { topicId } = topic
    for (const { range, segment } of changedSegments(topic, before)) {
      if (segment.endEntry === undefined) continue
      this.look({ topicId, range: range.range, segment: segment.segment }, segment)
    }
  }

  /** Something may have happened to the segment here. */
  lookAt(key: SegmentKey): void {
    const segment = this.segmentOf(key)
    if (segment !== undefined) this.look(key, segment)
  }

  private segmentOf({ topicId, range, segment }: SegmentKey): Segment | undefined {
    const topic = this.context.metadata.state.topics.get(topicId)
    const found = topic === undefined ? undefined : rangeByNumber(topic, range)
    return found === undefined ? undefined : segmentByNumber(found, segment)
  }

  private look(key: SegmentKey, segment: Segment): void {
    const { nodeId, store, seals } = this.context
    const { endEntry, replicas } = segment
    if (endEntry === undefined || !replicas.includes(nodeId)) return
    const log = store.find(key)
    if (log !== undefined && !log.sealed && !isLost(log, endEntry)) {
      // The seal comes back here when it is written.
      if (!seals.has(key)) seals.seal(key, log, endEntry)
      return
    }
    if (isWhole(log, endEntry) || this.sources(segment).length === 0) return
    const text = keyText(key)
    if (this.wanted.has(text)) return
    this.wanted.set(text, { key, retryMs: RETRY_MS_LEAST, running: false, timer: undefined })
    this.pump()
  }

  /** Others that may have entries of it, and this broker itself for a tail that it keeps. */
  private sources({ replicas, tail }: Segment): readonly NodeId[] {
    const { nodeId } = this.context
    const others = replicas.filter((node) => node !== nodeId)
    return this.fetches === undefined ? [] : [...others, ...(tail?.holders ?? [])]
  }

  private pump(): void {
    for (const wanted of this.wanted.values()) {
      if (this.running >= COPIES_MAX || this.stopped) return
      if (wanted.running || wanted.timer !== undefined) continue
      wanted.running = true
      this.running++
      void this.run(wanted)
    }
  }

  private async run(wanted: Wanted): Promise<void> {
    const { key } = wanted
    const { log } = this.context
    let done = false
    try {
      done = await this.copy(key)
    } catch (error) {
      log.warn('a segment could not be repaired and will be tried again', { ...key, err: error })
    }
    this.running--
    wanted.running = false
    if (done || this.stopped) this.wanted.delete(keyText(key))
    else {
      wanted.timer = this.context.clock.after(wanted.retryMs, () => {
        wanted.timer = undefined
        this.pump()
      })
      wanted.retryMs = Math.min(RETRY_MS_MOST, 2 * wanted.retryMs)
    }
    this.pump()
  }

  /** True: it is whole, or need not be. */
  private async copy(key: SegmentKey): Promise<boolean> {
    const { store } = this.context
    let copied = 0
    for (;;) {
      const segment = this.segmentOf(key)
      if (this.stopped || segment?.endEntry === undefined) return true
      if (!segment.replicas.includes(this.context.nodeId)) return true
      const { endEntry } = segment
      const found = store.find(key)
      if (found !== undefined && isLost(found, endEntry) && !(await this.hasOther(key, segment))) {
        // An operator may have ended it where this copy is whole.
        if (isOverruled(found, endEntry) || !(await store.acquit(key, endEntry))) return false
        this.context.log.info('a damaged segment is whole up to its end, and is served again', {
          ...key,
        })
      }
      const log = await this.openCopy(key, segment.endEntry)
      if (log === undefined) continue
      if (isWhole(log, segment.endEntry)) {
        if (copied > 0) this.context.log.info('a segment was repaired', { ...key, entries: copied })
        return true
      }
      const entries = await this.fetch(key, segment, log.end)
      if (entries.length === 0) return false
      if (store.find(key) !== log) continue
      await this.roomFor(entries)
      await log.install(entries)
      copied += entries.length
    }
  }

  /**
   * True when another replica has all of it, which who has its last entry has. Before that a damaged copy makes no way for
   * another: until the segment is settled it may be the only one that has what is whole in it.
   */
  private async hasOther(key: SegmentKey, { endEntry = 0, replicas }: Segment): Promise<boolean> {
    if (endEntry === 0) return true
    for (const node of replicas) {
      const last = await this.ask(node, key, undefined, endEntry - 1, endEntry)
      if (last.length > 0) return true
    }
    return false
  }

  /** The copy that entries go to; a damaged one makes way for it, since others have all of it. Undefined: look again. */
  private async openCopy(key: SegmentKey, end: number): Promise<SegmentLog | undefined> {
    const { store, log } = this.context
    const found = store.find(key)
    if (found !== undefined && isLost(found, end)) {
      log.warn('a damaged segment is copied anew from others', {
        ...key,
        damage: found.damage ?? 'it goes beyond the end',
      })
      await store.replaceSegment(key)
      return undefined
    }
    if (found !== undefined) {
      if (!found.sealed) await found.seal(end)
      return found
    }
    const made = store.create(key, { durable: () => {} })
    await made.seal(end)
    return made
  }

  /** The next entries from whoever has them first. */
  private async fetch(key: SegmentKey, segment: Segment, from: number): Promise<readonly Entry[]> {
    const { endEntry = 0, replicas, tail } = segment
    const { nodeId } = this.context
    if (tail !== undefined && from >= tail.from) {
      const own = tail.holders.includes(nodeId) ? await this.ownTail(key, tail.token) : undefined
      const wanted = own?.filter(({ entryNumber }) => entryNumber >= from) ?? []
      if (wanted.length > 0) return wanted
      for (const node of tail.holders) {
        const entries = await this.ask(node, key, tail.token, from, endEntry)
        if (entries.length > 0) return entries
      }
    }
    for (const node of replicas) {
      const entries = await this.ask(node, key, undefined, from, endEntry)
      if (entries.length > 0) return entries
    }
    return []
  }

  /** A damaged one is as none: others keep it too. */
  private async ownTail(key: SegmentKey, token: string): Promise<readonly Entry[] | undefined> {
    const { store, log } = this.context
    try {
      return await store.loadTail(key, token)
    } catch (error) {
      if (!(error instanceof EastGuardError) || error.code !== 'DAMAGED') throw error
      log.error('a tail that is kept for repair is damaged', { ...key, token, err: error })
      return undefined
    }
  }

  private async ask(
    node: NodeId,
    key: SegmentKey,
    token: string | undefined,
    from: number,
    below: number,
  ): Promise<readonly Entry[]> {
    if (node === this.context.nodeId || this.fetches === undefined) return []
    try {
      const entries = await this.fetches.fetch(node, key, token, from, below, CHUNK_BYTES)
      const dense = entries.every((entry, i) => entry.entryNumber === from + i)
      return dense ? entries : []
    } catch (error) {
      if (!(error instanceof EastGuardError)) throw error
      return []
    }
  }

  /** Waits until the store takes so much, as a leader's entries do. */
  private async roomFor(entries: readonly Entry[]): Promise<void> {
    let bytes = 0
    for (const { batch } of entries) bytes += batch.length
    for (;;) {
      if (this.stopped || this.context.store.room(bytes) === 'ok') return
      await new Promise<void>((resolve) => {
        this.context.clock.after(RETRY_MS_LEAST, resolve)
      })
    }
  }

  stop(): void {
    this.stopped = true
    for (const { timer } of this.wanted.values()) timer?.cancel()
  }
}

/** Nothing of it can be used when others have all. */
function isLost(log: SegmentLog, end: number): boolean {
  return log.damage !== undefined || isOverruled(log, end)
}

function isWhole(log: SegmentLog | undefined, end: number): boolean {
  if (log === undefined) return end === 0
  return log.damage === undefined && log.sealed && log.durableEnd >= end
}

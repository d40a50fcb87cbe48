// Entries that a copy of a sealed segment lacks, from a broker that has them: its own copy, or a tail that it keeps under a
// token. Only what is sealed is given away: what lies above the end of a segment was acknowledged to nobody.

import { EastGuardError, messageOf } from '../../base/errors.ts'
import { rangeByNumber, segmentByNumber } from '../../core/metadata/lookup.ts'
import { type Entry, type SegmentPlace, samePlace } from '../../model/entry.ts'
import type { NodeId } from '../../model/ids.ts'
import { placeOfKey, type SegmentKey } from '../../model/segment-key.ts'
import type { Timer } from '../../ports/clock.ts'
import { encodeEntries, entryBytes, NO_ENTRIES } from '../../wire/data/entries.ts'
import { fetchedFrame } from '../../wire/data/load.ts'
import type { Fetch, Fetched } from '../../wire/data/types.ts'
import type { DataLinks, Flow } from '../data/types.ts'
import type { RangeContext } from '../range/context.ts'

const PART_BYTES = 256 * 1024
/** What one peer may have asked for at a time. */
const FETCHES_MAX = 16
/** Nothing came for so long: over a slow link one part may take as long as that. */
const FETCH_TIMEOUT_MS = 10_000
const NO_FRAMES: readonly Uint8Array[] = []

/** Answers others. */
export class FetchServer {
  private readonly context: RangeContext
  private readonly links: DataLinks
  private readonly running = new Map<NodeId, Set<Serving>>()

  constructor(context: RangeContext, links: DataLinks) {
    this.context = context
    this.links = links
  }

  link(node: NodeId): void {
    for (const serving of this.running.get(node) ?? []) serving.flow.close()
    this.running.delete(node)
  }

  receive(from: NodeId, fetch: Fetch): void {
    const ofPeer = this.running.get(from) ?? new Set<Serving>()
    this.running.set(from, ofPeer)
    const serving = new Serving(this.links, from, fetch, () => ofPeer.delete(serving))
    ofPeer.add(serving)
    if (ofPeer.size > FETCHES_MAX) return serving.end('too much is asked for at a time')
    this.read(fetch).then(
      (entries) => serving.give(entries),
      (error: unknown) => serving.end(messageOf(error)),
    )
  }

  private async read({ key, token, from, below, bytesMax }: Fetch): Promise<readonly Entry[]> {
    const { store, metadata } = this.context
    const topic = metadata.state.topics.get(key.topicId)
    const range = topic === undefined ? undefined : rangeByNumber(topic, key.range)
    const segment = range === undefined ? undefined : segmentByNumber(range, key.segment)
    const end = segment?.endEntry
    if (end === undefined)
      throw new EastGuardError('NOT_READY', 'it is not known to be sealed here')
    const found: Entry[] = []
    let bytes = 0
    const take = (entries: readonly Entry[]): boolean => {
      for (const entry of entries) {
        if (entry.entryNumber < from) continue
        bytes += entryBytes(entry)
        if (entry.entryNumber >= Math.min(below, end)) return false
        if (bytes > bytesMax && found.length > 0) return false
        found.push(entry)
      }
      return true
    }
    if (token !== undefined) {
      take((await store.loadTail(key, token)) ?? [])
      return found
    }
    const log = store.find(key)
    if (log === undefined) return found
    if (log.damage !== undefined) throw new EastGuardError('DAMAGED', log.damage)
    for await (const entries of log.scan(from)) if (!take(entries)) break
    return found
  }
}

class Serving {
  readonly flow: Flow
  private readonly fetch: Fetch
  private readonly onEnd: () => void
  private entries: readonly Entry[] = []
  private at = 0
  private failed: string | undefined
  private given = false
  private last = false

  constructor(links: DataLinks, node: NodeId, fetch: Fetch, onEnd: () => void) {
    this.fetch = fetch
    this.onEnd = onEnd
    this.flow = links.flow(node, { way: 'in', bulk: true, fill: (budget) => this.fill(budget) })
  }

  give(entries: readonly Entry[]): void {
    this.entries = entries
    this.given = true
    this.flow.ready()
  }

  end(failed: string): void {
    this.failed = failed
    this.given = true
    this.flow.ready()
  }

  private fill(budgetBytes: number): readonly Uint8Array[] {
    if (!this.given || this.last) return NO_FRAMES
    const budget = Math.min(budgetBytes, PART_BYTES)
    const from = this.at
    let bytes = 0
    while (this.at < this.entries.length) {
      bytes += entryBytes(this.entries[this.at] as Entry)
      if (bytes > budget && this.at > from) break
      this.at++
    }
    this.last = this.at === this.entries.length
    const part = this.entries.slice(from, this.at)
    const { id, key } = this.fetch
    const frames = fetchedFrame(
      { id, failed: this.failed, last: this.last },
      part.length === 0 ? NO_ENTRIES : encodeEntries(placeOfKey(key), part),
    )
    if (this.last) {
      this.flow.close()
      this.onEnd()
    }
    return frames
  }
}

interface Asked {
  readonly node: NodeId
  readonly place: SegmentPlace
  readonly entries: Entry[]
  timer: Timer
  readonly settle: (entries: readonly Entry[] | Error) => void
}

/** Asks others. */
export class FetchClient {
  private readonly context: RangeContext
  private readonly links: DataLinks
  private readonly asked = new Map<number, Asked>()
  private lastId = 0

  constructor(context: RangeContext, links: DataLinks) {
    this.context = context
    this.links = links
  }

  /** Entries from `from` on, as many as there are and fit. Rejects when the broker cannot be asked, or cannot answer. */
  fetch(
    node: NodeId,
    key: SegmentKey,
    token: string | undefined,
    from: number,
    below: number,
    bytesMax: number,
  ): Promise<readonly Entry[]> {
    const id = ++this.lastId
    return new Promise((resolve, reject) => {
      const settle = (result: readonly Entry[] | Error): void => {
        const one = this.asked.get(id)
        if (one === undefined) return
        this.asked.delete(id)
        one.timer.cancel()
        if (result instanceof Error) reject(result)
        else resolve(result)
      }
      const timer = this.patience(id)
      this.asked.set(id, { node, place: placeOfKey(key), entries: [], timer, settle })
      const sent = this.links.send(node, { kind: 'fetch', id, key, token, from, below, bytesMax })
      if (!sent) settle(notReady('it cannot be reached'))
    })
  }

  private patience(id: number): Timer {
    return this.context.clock.after(FETCH_TIMEOUT_MS, () => {
      this.asked.get(id)?.settle(notReady('it does not answer'))
    })
  }

  link(node: NodeId, up: boolean): void {
    if (up) return
    for (const one of Array.from(this.asked.values())) {
      if (one.node === node) one.settle(notReady('the link to it broke'))
    }
  }

  receive(from: NodeId, { id, place, entries, failed, last }: Fetched): void {
    const one = this.asked.get(id)
    if (one === undefined || one.node !== from) return
    if (place !== undefined && !samePlace(place, one.place)) {
      one.settle(notReady('it gave entries of another segment'))
      return
    }
    one.entries.push(...entries)
    if (failed !== undefined) one.settle(notReady(failed))
    else if (last) one.settle(one.entries)
    else {
      one.timer.cancel()
      one.timer = this.patience(id)
    }
  }
}

function notReady(what: string): EastGuardError {
  return new EastGuardError('NOT_READY', what)
}

// A file's bytes as the operating system sees them, and every earlier state that a power cut may bring back.
//
//   page 0   page 1   page 2              what reads return; a page is never changed once it is here, only replaced,
//     N        N        N                 so that keeping an older one, or copying the whole file, costs a reference
//              │        │
//              A        B, A              older pages, newest first: those that the platter may still hold
//
// A page without older ones is durable. `sync` is two moments: what was written before the first is durable at the
// second; what was written between them may be or not, so the page as it was at the first moment is kept as an older
// one (`replacedIn` tells the two sides apart). The length is remembered in the same way.
//
// After a sync that failed, the system holds the pages for clean although the platter never got them: they can be
// read, a later sync skips them, and a power cut takes them back. Writing to such a page makes it dirty, whole, again.

import { assert } from '../../base/assert.ts'
import type { Prng } from '../../base/prng.ts'

export const PAGE_BYTES = 4096
/** What a drive writes whole or not at all. */
const SECTOR_BYTES = 512

/** How a crash decides what made it: each thing by itself, `share` of them in the mean. */
export interface Luck {
  readonly chance: Prng
  readonly share: number
}

type Page = Uint8Array

/** Not stored: a page that is missing is this one. */
const ZERO_PAGE: Page = new Uint8Array(PAGE_BYTES)

interface Older<T> {
  readonly value: T
  /** Syncs begun before it was replaced. */
  readonly replacedIn: number
}

export class SimFile {
  readonly kind = 'file' as const
  size = 0
  private pages = new Map<number, Page>()
  /** Oldest first; the oldest is on the platter. */
  private older = new Map<number, Older<Page>[]>()
  private olderSizes: Older<number>[] = []
  /** What the platter has where a failed sync made the system forget that it lacks the page. */
  private lost = new Map<number, Page>()
  private lostSize: number | undefined
  private syncs = 0

  read(into: Uint8Array, position: number): number {
    const count = Math.max(0, Math.min(into.length, this.size - position))
    for (const { page, from, to, at } of parts(position, count)) {
      into.set(this.page(page).subarray(from, to), at)
    }
    return count
  }

  /** `bytes` must not change afterwards. */
  write(bytes: Uint8Array, position: number): void {
    for (const part of parts(position, bytes.length)) {
      this.replace(part.page, patched(this.page(part.page), part, bytes))
    }
    const end = position + bytes.length
    if (bytes.length > 0) this.resize(Math.max(this.size, end))
    // The length goes to the platter with the file's last page.
    if (this.lostSize !== undefined && end >= this.size) {
      remember(this.olderSizes, this.lostSize, this.syncs)
      this.lostSize = undefined
    }
  }

  /** Just these bytes are durable; unsynced ones that share a page with them are not. */
  writeDurable(bytes: Uint8Array, position: number): void {
    for (const part of parts(position, bytes.length)) {
      const { page } = part
      if (part.to - part.from === PAGE_BYTES) {
        this.older.delete(page)
        this.lost.delete(page)
      }
      this.changeCopies(page, (copy) => patched(copy, part, bytes))
    }
    const end = position + bytes.length
    this.olderSizes = this.olderSizes.map((one) => ({ ...one, value: Math.max(one.value, end) }))
    if (this.lostSize !== undefined) this.lostSize = Math.max(this.lostSize, end)
    this.size = Math.max(this.size, end)
  }

  truncate(length: number): void {
    if (length < this.size) {
      for (const page of this.pages.keys()) {
        const kept = length - page * PAGE_BYTES
        if (kept < PAGE_BYTES) this.replace(page, cutPage(this.page(page), kept))
      }
    }
    this.resize(length)
  }

  /** The ticket is for `endSync` or `failSync`. */
  beginSync(): number {
    return this.syncs++
  }

  endSync(ticket: number): void {
    for (const [page, older] of this.older) {
      const left = older.filter(({ replacedIn }) => replacedIn > ticket)
      if (left.length === 0) this.older.delete(page)
      else if (left.length < older.length) this.older.set(page, left)
    }
    this.olderSizes = this.olderSizes.filter(({ replacedIn }) => replacedIn > ticket)
  }

  /** Some pages stay dirty, the others are forgotten; the system may drop those from memory, too, or not. */
  failSync(ticket: number, chance: Prng): void {
    const dropped = chance.below(4) === 0
    for (const [page, older] of this.older) {
      const [platter] = older
      if (platter === undefined || platter.replacedIn > ticket || chance.below(4) === 0) continue
      const [next, ...left] = older.filter(({ replacedIn }) => replacedIn > ticket)
      if (next !== undefined) {
        this.older.set(page, [{ ...next, value: platter.value }, ...left])
        continue
      }
      this.older.delete(page)
      if (dropped) this.setPage(page, platter.value)
      else this.lost.set(page, platter.value)
    }
    const [size] = this.olderSizes
    if (size !== undefined && this.olderSizes.every(({ replacedIn }) => replacedIn <= ticket)) {
      this.lostSize = size.value
      this.olderSizes = []
    }
  }

  /** Without luck nothing survives that was not synced. */
  powerCut(luck: Luck | undefined): void {
    for (const [page, older] of this.older) {
      this.setPage(page, survivingPage(older, this.page(page), luck))
    }
    for (const [page, platter] of this.lost) this.setPage(page, platter)
    const size = survivingSize(this.olderSizes, this.lostSize ?? this.size, luck)
    this.older.clear()
    this.lost.clear()
    this.olderSizes = []
    this.lostSize = undefined
    this.size = size
    for (const page of this.pages.keys()) {
      const kept = size - page * PAGE_BYTES
      if (kept < PAGE_BYTES) this.setPage(page, cutPage(this.page(page), kept))
    }
  }

  /** What a power cut without luck would leave, without one. */
  durable(): Uint8Array {
    const size = survivingSize(this.olderSizes, this.lostSize ?? this.size, undefined)
    const bytes = new Uint8Array(size)
    for (let page = 0; page * PAGE_BYTES < size; page++) {
      const older = this.older.get(page) ?? []
      const durable = this.lost.get(page) ?? survivingPage(older, this.page(page), undefined)
      const at = page * PAGE_BYTES
      if (durable !== ZERO_PAGE) bytes.set(durable.subarray(0, size - at), at)
    }
    return bytes
  }

  /** What a write that was under way left: any of its pages, and of a page perhaps its first sectors. */
  writeSome(bytes: Uint8Array, position: number, { chance, share }: Luck): void {
    for (const { page, from, to, at } of parts(position, bytes.length)) {
      let length = to - from
      if (chance.float() >= share) {
        if (chance.below(4) > 0) continue
        length = Math.min(length, sectorEnd(from + chance.below(length)) - from)
      }
      this.write(bytes.slice(at, at + length), page * PAGE_BYTES + from)
    }
  }

  /** Wherever the byte is kept. */
  flipBit(byte: number, bit: number): void {
    assert(byte < this.size, `byte ${byte} is beyond the end of the file, at ${this.size}`)
    const page = Math.floor(byte / PAGE_BYTES)
    const flipped = (bytes: Page): Page => {
      const copy = bytes.slice()
      copy[byte % PAGE_BYTES] = (copy[byte % PAGE_BYTES] as number) ^ (1 << bit)
      return copy
    }
    this.changeCopies(page, flipped)
  }

  copy(): SimFile {
    const file = new SimFile()
    file.size = this.size
    file.pages = new Map(this.pages)
    for (const [page, older] of this.older) file.older.set(page, [...older])
    file.olderSizes = [...this.olderSizes]
    file.lost = new Map(this.lost)
    file.lostSize = this.lostSize
    file.syncs = this.syncs
    return file
  }

  private page(page: number): Page {
    return this.pages.get(page) ?? ZERO_PAGE
  }

  private setPage(page: number, bytes: Page): void {
    if (bytes === ZERO_PAGE) this.pages.delete(page)
    else this.pages.set(page, bytes)
  }

  /** In memory, on the platter, and in between. */
  private changeCopies(page: number, change: (bytes: Page) => Page): void {
    this.setPage(page, change(this.page(page)))
    const older = this.older.get(page)
    if (older !== undefined) {
      const changed = older.map((one) => ({ ...one, value: change(one.value) }))
      this.older.set(page, changed)
    }
    const platter = this.lost.get(page)
    if (platter !== undefined) this.lost.set(page, change(platter))
  }

  private replace(page: number, next: Page): void {
    const now = this.page(page)
    if (next === now) return
    const older = this.older.get(page)
    if (older === undefined) {
      this.older.set(page, [{ value: this.lost.get(page) ?? now, replacedIn: this.syncs }])
      this.lost.delete(page)
    } else {
      remember(older, now, this.syncs)
    }
    this.setPage(page, next)
  }

  private resize(size: number): void {
    if (size === this.size) return
    remember(this.olderSizes, this.lostSize ?? this.size, this.syncs)
    this.lostSize = undefined
    this.size = size
  }
}

/** Between two syncs the first and the last of the replaced ones are kept: enough to be found, and bounded. */
function remember<T>(older: Older<T>[], value: T, replacedIn: number): void {
  if (older.at(-1)?.replacedIn === replacedIn && older.at(-2)?.replacedIn === replacedIn) {
    older.pop()
  }
  older.push({ value, replacedIn })
}

interface Part {
  readonly page: number
  /** Within the page. */
  readonly from: number
  readonly to: number
  /** Where its bytes begin in what is read or written. */
  readonly at: number
}

function parts(position: number, length: number): Part[] {
  const found: Part[] = []
  for (let at = 0; at < length; ) {
    const page = Math.floor((position + at) / PAGE_BYTES)
    const from = position + at - page * PAGE_BYTES
    const to = Math.min(PAGE_BYTES, from + length - at)
    found.push({ page, from, to, at })
    at += to - from
  }
  return found
}

function patched(page: Page, { from, to, at }: Part, bytes: Uint8Array): Page {
  if (to - from === PAGE_BYTES) return bytes.subarray(at, at + PAGE_BYTES)
  const copy = page.slice()
  copy.set(bytes.subarray(at, at + to - from), from)
  return copy
}

/** The page with zeros behind its first `kept` bytes. */
function cutPage(page: Page, kept: number): Page {
  if (kept <= 0 || page === ZERO_PAGE) return ZERO_PAGE
  return page.slice().fill(0, kept)
}

function survivingPage(older: readonly Older<Page>[], newest: Page, luck: Luck | undefined): Page {
  const platter = older[0]?.value ?? newest
  if (luck === undefined) return platter
  const { chance, share } = luck
  const pick =
    chance.float() < share ? newest : (older[chance.below(older.length)]?.value ?? newest)
  if (chance.below(8) > 0) return pick
  // Torn: the drive had come so far in the page.
  const torn = platter.slice()
  const end = sectorEnd(chance.below(PAGE_BYTES))
  torn.set(newest.subarray(0, end))
  return torn
}

function survivingSize(
  older: readonly Older<number>[],
  newest: number,
  luck: Luck | undefined,
): number {
  const platter = older[0]?.value ?? newest
  if (luck === undefined || older.length === 0) return platter
  const { chance, share } = luck
  if (chance.float() < share) return newest
  const pick = older[chance.below(older.length)]?.value ?? newest
  if (newest <= pick || chance.below(2) === 0) return pick
  // A file that grows does so page by page.
  return Math.min(
    newest,
    (Math.floor((pick + chance.below(newest - pick)) / PAGE_BYTES) + 1) * PAGE_BYTES,
  )
}

function sectorEnd(byte: number): number {
  return (Math.floor(byte / SECTOR_BYTES) + 1) * SECTOR_BYTES
}

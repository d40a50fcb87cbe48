// What goes out on one connection of the data port.
//
//   ping or pong, the last one ──┐
//   words, in their order ───────┼──> connection, while it has not enough
//   flows, in turn ──────────────┘
//
// Nothing is kept for flows: they are asked when the connection takes more, so what waits here and in the connection is
// bounded whatever the peer does. Words are few and small, and what does not find room is dropped: their senders repeat.
// All that becomes due while one event is handled is gathered behind it, and the connection sends a turn's writes at once.

import type { Connection } from '../../ports/streams.ts'
import type { LinkCounters, Outlet } from '../links/types.ts'
import { FairFlows, type Source, sizeOf, type Turn } from './fair-flows.ts'
import type { DataSettings } from './settings.ts'

export class DataOutlet implements Outlet {
  private readonly settings: DataSettings
  private readonly counters: LinkCounters
  private readonly flows = new FairFlows()
  private connection: Connection | undefined
  private lastBeat: Uint8Array | undefined
  private words: Uint8Array[] = []
  private wordBytes = 0
  private blocked = false
  private due = false

  constructor(settings: DataSettings, counters: LinkCounters) {
    this.settings = settings
    this.counters = counters
  }

  /** False: it was dropped. */
  send(word: Uint8Array): boolean {
    const { connection, wordBytes, settings } = this
    if (connection === undefined || wordBytes + word.length > settings.wordBytesMax) {
      this.counters.dropped.add(1)
      return false
    }
    this.words.push(word)
    this.wordBytes += word.length
    this.pumpSoon()
    return true
  }

  add(source: Source): Turn {
    const turn = this.flows.add(source)
    return {
      ready: () => {
        turn.ready()
        this.pumpSoon()
      },
      close: () => turn.close(),
    }
  }

  open(connection: Connection): void {
    connection.highWaterBytes = this.settings.queuedBytesMax
    this.connection = connection
    this.blocked = false
    this.pumpSoon()
  }

  drained(): void {
    this.blocked = false
    this.pump()
  }

  /** Each says as much as all before it. */
  beat(frame: Uint8Array): boolean {
    this.lastBeat = frame
    this.pumpSoon()
    return true
  }

  flush(): void {
    const { connection } = this
    if (connection !== undefined) this.write(connection, this.takeWords())
  }

  close(): void {
    if (this.words.length > 0) this.counters.dropped.add(this.words.length)
    this.connection = undefined
    this.takeWords()
  }

  private pumpSoon(): void {
    if (this.due || this.blocked || this.connection === undefined) return
    this.due = true
    void Promise.resolve().then(() => {
      this.due = false
      this.pump()
    })
  }

  private pump(): void {
    const { connection } = this
    // What is asked may send words, or close this.
    while (connection !== undefined && this.connection === connection && !this.blocked) {
      const words = this.takeWords()
      const buffers = words.length > 0 ? words : this.flows.next()
      if (buffers.length === 0 || this.connection !== connection) return
      this.write(connection, buffers)
    }
  }

  private takeWords(): readonly Uint8Array[] {
    const { lastBeat, words } = this
    if (lastBeat === undefined && words.length === 0) return words
    this.lastBeat = undefined
    this.words = []
    this.wordBytes = 0
    return lastBeat === undefined ? words : [lastBeat, ...words]
  }

  private write(connection: Connection, buffers: readonly Uint8Array[]): void {
    this.counters.sentBytes.add(sizeOf(buffers))
    this.blocked = !connection.write(buffers)
  }
}

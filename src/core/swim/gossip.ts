// What is told along with every packet: of each subject the newest word, so many times as it takes to reach everyone with
// high probability (a multiple of the logarithm of the members), the least told first, as much as the packet has room for.

import type { NodeId } from '../../model/ids.ts'
import type { PacketBody, ShardHint, Update } from '../../model/swim.ts'
import type { PacketSizes, SwimSettings } from './types.ts'

interface Rumour<V> {
  readonly value: V
  readonly bytes: number
  readonly order: number
  told: number
}

/** One kind of news, by subject. */
class Rumours<K, V> {
  private readonly bySubject = new Map<K, Rumour<V>>()
  private order = 0

  get size(): number {
    return this.bySubject.size
  }

  add(subject: K, value: V, bytes: number): void {
    this.bySubject.set(subject, { value, bytes, order: this.order++, told: 0 })
  }

  has(subject: K): boolean {
    return this.bySubject.has(subject)
  }

  remove(subject: K): void {
    this.bySubject.delete(subject)
  }

  removeIf(wrong: (value: V) => boolean): void {
    for (const [subject, { value }] of this.bySubject) {
      if (wrong(value)) this.bySubject.delete(subject)
    }
  }

  /** The least told first, of these the newest; `fits` says for each whether it still goes in. */
  take(times: number, fits: (subject: K, bytes: number) => boolean): readonly V[] {
    const chosen: V[] = []
    const byNeed = [...this.bySubject].sort(([, a], [, b]) => a.told - b.told || b.order - a.order)
    for (const [subject, rumour] of byNeed) {
      if (!fits(subject, rumour.bytes)) continue
      chosen.push(rumour.value)
      rumour.told++
      if (rumour.told >= times) this.bySubject.delete(subject)
    }
    return chosen
  }
}

export interface Load {
  readonly updates: readonly Update[]
  readonly hints: readonly ShardHint[]
}

/** Of updates in one packet: their number is one byte. */
const UPDATES_MAX = 255

export class Gossip {
  private readonly updates = new Rumours<NodeId, Update>()
  private readonly hints = new Rumours<number, ShardHint>()
  private readonly settings: SwimSettings
  private readonly sizes: PacketSizes

  constructor(settings: SwimSettings, sizes: PacketSizes) {
    this.settings = settings
    this.sizes = sizes
  }

  /** Whether there is anything to tell. */
  get waiting(): boolean {
    return this.updates.size > 0 || this.hints.size > 0
  }

  tell(update: Update): void {
    this.updates.add(update.member.node, update, this.sizes.update(update))
  }

  tellHint(hint: ShardHint): void {
    this.hints.add(hint.shard, hint, this.sizes.hint)
  }

  tells(node: NodeId): boolean {
    return this.updates.has(node)
  }

  forget(node: NodeId): void {
    this.updates.remove(node)
  }

  forgetDeaths(): void {
    this.updates.removeIf(({ member }) => member.state === 'dead')
  }

  /** What goes along with this body; `first` does in any case. */
  load(body: PacketBody, members: number, first: Update | undefined): Load {
    const { sizes, settings } = this
    const times = settings.retransmits * Math.ceil(Math.log10(members + 1))
    const updates: Update[] = []
    let room = sizes.room(body)
    if (first !== undefined) {
      updates.push(first)
      room -= sizes.update(first)
    }
    let count = updates.length
    const more = this.updates.take(times, (node, bytes) => {
      if (bytes > room || count === UPDATES_MAX || node === first?.member.node) return false
      room -= bytes
      count++
      return true
    })
    let hintsLeft = Math.min(settings.hintsPerPacket, Math.floor(room / sizes.hint))
    const hints = this.hints.take(times, () => hintsLeft-- > 0)
    return { updates: [...updates, ...more], hints }
  }
}

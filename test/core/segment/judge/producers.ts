// One producer for each partition, which sends batch after batch, some at a time, and again from the first that was not
// acknowledged when something goes wrong.

import type { World } from './world.ts'

const WINDOW = 3
const PATIENCE_MS = 700

interface Producer {
  readonly partition: number
  acked: number
  cursor: number
  movedMs: number
}

export class Producers {
  private readonly world: World
  private readonly all: readonly Producer[]
  /** Nobody produces until then. */
  private idleUntil = 0

  constructor(world: World) {
    this.world = world
    this.all = Array.from({ length: world.profile.partitions }, (_, partition) => {
      return { partition, acked: 0, cursor: 0, movedMs: 0 }
    })
  }

  /** The least that any of them has had acknowledged. */
  get least(): number {
    return Math.min(...this.all.map(({ acked }) => acked))
  }

  ackedOf(partition: number): number {
    return this.all[partition]?.acked ?? 0
  }

  tick(): void {
    const { chance, clock, calm, profile } = this.world
    const now = clock.monotonic()
    if (!calm && now < this.idleUntil) return
    if (!calm && chance.float() < profile.idleShare) this.rest(chance.float() * 4000)
    for (const producer of this.all) this.send(producer)
  }

  rest(ms: number): void {
    this.idleUntil = this.world.clock.monotonic() + ms
  }

  private send(producer: Producer): void {
    const { world } = this
    const now = world.clock.monotonic()
    if (now - producer.movedMs > PATIENCE_MS) {
      producer.cursor = producer.acked
      producer.movedMs = now
    }
    if (producer.cursor - producer.acked >= WINDOW) return
    const sequence = producer.cursor
    const to = this.leader()
    if (to === undefined) return
    producer.cursor++
    world.later(world.netMs(), () => {
      world.net.atBroker(to, (process) => {
        const number = Math.max(...process.leading.keys())
        const taken = process.leading
          .get(number)
          ?.produce(producer.partition, sequence, (stored) => {
            world.later(world.netMs(), () => this.answered(producer, sequence, stored))
          })
        if (taken !== true) this.answered(producer, sequence, false)
      })
    })
  }

  /** As whoever it asked last knew it; now and then one that led before. */
  private leader(): number | undefined {
    const { world } = this
    const { register, chance, brokers } = world
    const asked = brokers[chance.below(brokers.length)]?.process?.applied ?? register.index
    const segments = register.segments(world.calm ? register.index : asked)
    const back = !world.calm && chance.below(5) === 0 ? 2 : 1
    const leader = segments.at(-back)?.replicas[0]
    const index = brokers.findIndex(({ id }) => id === leader)
    return index < 0 ? undefined : index
  }

  private answered(producer: Producer, sequence: number, stored: boolean): void {
    if (stored && sequence >= producer.acked) {
      // Batches before it in the partition are committed with it.
      producer.acked = sequence + 1
      producer.cursor = Math.max(producer.cursor, producer.acked)
      producer.movedMs = this.world.clock.monotonic()
    } else if (!stored && sequence < producer.cursor && sequence >= producer.acked) {
      producer.cursor = producer.acked
    }
  }
}

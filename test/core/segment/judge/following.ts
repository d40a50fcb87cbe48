// A segment that this broker follows, or held before it restarted.

import type { SegmentFollower } from '../../../../src/core/segment/follower.ts'
import type { FenceAnswer } from '../../../../src/core/segment/types.ts'
import type { Item } from './disk.ts'
import type { Process } from './process.ts'

export type Opened =
  | 'not-yet'
  | { readonly refuse: string }
  | { readonly boot: number; readonly next: number; readonly ackable: number }

interface Sent {
  readonly leader: Process
  readonly from: number
  readonly items: readonly Item[]
  readonly highWatermark: number
  /** False: it was left over on a link that broke, and whoever sent it hears nothing of it. */
  readonly answered: boolean
}

export class Following {
  readonly number: number
  readonly machine: SegmentFollower
  private readonly process: Process
  private fenceAsked = false
  private told = 0

  constructor(process: Process, number: number, machine: SegmentFollower) {
    this.process = process
    this.number = number
    this.machine = machine
  }

  opened(): Opened {
    const { machine, process } = this
    if (machine.fenced) return { refuse: 'it is fenced here' }
    this.told = machine.ackable
    return { boot: process.boot, next: machine.next, ackable: machine.ackable }
  }

  takes({ leader, from, items, highWatermark, answered }: Sent): void {
    const { machine, process, number } = this
    for (const [i, item] of items.entries()) {
      const entry = from + i
      const check = machine.check(leader.id, entry)
      if (check !== 'take') {
        if (answered) this.refuses(leader, check.refuse)
        return
      }
      process.world.truth.copies(process, number, machine.next, item)
      machine.took()
      const at = machine.next
      process.broker.disk.write({ kind: 'entry', segment: number, item }, () => {
        process.world.truth.stored(process.id, number, at)
        machine.durable(at)
        this.acknowledges(leader)
      })
    }
    machine.heard(highWatermark)
    this.serves()
  }

  private refuses(leader: Process, why: string): void {
    const { process, number } = this
    process.world.net.stream(process, leader.id, `no: ${why}`, (to) => {
      if (to === leader) to.leading.get(number)?.refused(process.id, why)
    })
  }

  /** Once for all that a sync made durable. */
  private acknowledges(leader: Process): void {
    const { machine, process, number } = this
    this.serves()
    const end = machine.ackable
    if (end <= this.told) return
    this.told = end
    process.world.net.stream(process, leader.id, `durable up to ${end}`, (to) => {
      if (to === leader) to.leading.get(number)?.acknowledged(process.id, end)
    })
  }

  /** Whoever reads here sees this much. */
  serves(): void {
    const { machine, process, number } = this
    process.world.truth.reads(number, machine.highWatermark, process.broker.name)
  }

  // ---- fences

  fence(answer: (answer: FenceAnswer) => void): void {
    const { machine, process, number } = this
    if (machine.answer !== undefined) return this.tell(answer)
    machine.fence()
    if (machine.answer !== undefined) return this.tell(answer)
    if (this.fenceAsked) return
    this.fenceAsked = true
    process.world.say(`${process.broker.name} fences segment ${number} at ${machine.next}`)
    process.broker.disk.write({ kind: 'fence', segment: number }, () => {
      machine.fenceDurable()
      this.tell(answer)
    })
  }

  private tell(answer: (answer: FenceAnswer) => void): void {
    const { machine, process, number } = this
    if (machine.answer === undefined) return
    const { unsure } = process.broker.disk.segment(number)
    answer({ boot: process.boot, ...machine.answer, unsure })
    process.world.seize(process, 'a fence was answered')
  }
}

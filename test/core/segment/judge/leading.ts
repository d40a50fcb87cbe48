// A segment that this broker leads: it numbers what is produced, sends it to its followers over one stream each, and answers
// producers when it has become visible.
//
//   open ──> opened, from entry n ──> entries from n on, pipelined ──> acknowledgements, as they are synced
//     ^            │ not yet: again                                          │ refused, or another start of it: it has failed
//     └────────────┴──────────────── the link breaks ────────────────────────┘

import type { SegmentLeader, SegmentNews } from '../../../../src/core/segment/leader.ts'
import type { EndReason, FenceAnswer, LeadersEnd } from '../../../../src/core/segment/types.ts'
import type { NodeId } from '../../../../src/model/ids.ts'
import type { Item } from './disk.ts'
import type { Opened } from './following.ts'
import { TIMING } from './place.ts'
import type { Process } from './process.ts'

const OPEN_AGAIN_MS = 50
const GIVE_AGAIN_MS = 100

interface Channel {
  readonly to: NodeId
  boot: number | undefined
  opened: boolean
  sent: number
  openAtMs: number
  hwSent: number
  failed: boolean
}

interface Waiting {
  readonly entry: number
  readonly done: (stored: boolean) => void
}

export class Leading {
  readonly number: number
  readonly machine: SegmentLeader
  readonly items: Item[] = []
  private readonly process: Process
  private readonly token: string
  private readonly next: number[]
  private readonly first: readonly number[]
  private readonly channels: readonly Channel[]
  private waiting: Waiting[] = []
  private hwSeen = 0
  private given: LeadersEnd | undefined
  private giveAtMs = 0
  private cancelAtMs = 0
  private fenced: 'no' | 'queued' | 'durable' = 'no'

  constructor(
    process: Process,
    number: number,
    token: string,
    machine: SegmentLeader,
    followers: readonly NodeId[],
    next: number[],
  ) {
    this.process = process
    this.number = number
    this.token = token
    this.machine = machine
    this.next = next
    this.first = [...next]
    this.channels = followers.map((to) => {
      const unsent = { boot: undefined, opened: false, sent: 0, openAtMs: 0, hwSent: 0 }
      return { to, failed: false, ...unsent }
    })
  }

  // ---- producers

  /** Answers later, unless it is refused at once. */
  produce(partition: number, sequence: number, done: (stored: boolean) => void): boolean {
    const { machine, process } = this
    const { world } = process
    const next = this.next[partition] ?? 0
    if (sequence < next) return this.retried(partition, sequence, done)
    if (sequence > next || !machine.mayAppend || !process.leased(this.number)) return false
    const item = { partition, sequence, highWatermark: machine.highWatermark }
    const entry = machine.end
    world.truth.appends(process, this.number, entry, item)
    this.next[partition] = next + 1
    this.items.push(item)
    this.waiting.push({ entry, done })
    machine.appended(process.now)
    process.broker.disk.write({ kind: 'entry', segment: this.number, item }, () => {
      world.truth.stored(process.id, this.number, entry + 1)
      machine.durable(entry + 1)
      this.moved()
    })
    this.pump()
    return true
  }

  /** A batch that it has already: answered when it is visible. */
  private retried(partition: number, sequence: number, done: (stored: boolean) => void): boolean {
    if (sequence < (this.first[partition] ?? 0)) {
      done(true)
      return true
    }
    const entry = this.items.findIndex((one) => {
      return one.partition === partition && one.sequence === sequence
    })
    this.waiting.push({ entry, done })
    this.answer()
    return true
  }

  // ---- followers

  tick(): void {
    const { machine, process } = this
    machine.tick(process.now)
    this.pump()
    this.moved()
    const { given } = machine
    if (given === undefined || process.now < this.giveAtMs) return
    this.giveAtMs = process.now + GIVE_AGAIN_MS
    const coordinator = process.world.coordinatorFor(process)
    if (coordinator !== undefined) {
      process.world.net.tell(process, coordinator.host.id, `end ${given.end}`, () => {
        coordinator.gave(process.id, process.boot, this.number, given)
      })
    }
    if (!machine.wantsCancel || process.now < this.cancelAtMs) return
    this.cancelAtMs = process.now + TIMING.frozenTimeoutMs / 4
    process.world.asksForCancel(process, this.number, given.attempt)
  }

  linkBroke(peer: NodeId): void {
    for (const channel of this.channels) if (channel.to === peer) channel.opened = false
  }

  private pump(): void {
    const { machine, process } = this
    if (machine.mode === 'ended') return
    for (const channel of this.channels) {
      if (channel.failed) continue
      if (channel.opened) this.send(channel)
      else if (process.now >= channel.openAtMs) this.open(channel)
    }
  }

  private open(channel: Channel): void {
    const { process, token, number } = this
    channel.openAtMs = process.now + OPEN_AGAIN_MS
    process.world.net.stream(process, channel.to, `open segment ${number}`, (to) => {
      const opened = to.desk.opened(process.id, number, token)
      to.world.net.stream(to, process.id, `opened ${describe(opened)}`, (back) => {
        if (back === process) this.opened(channel, opened)
      })
    })
  }

  private opened(channel: Channel, opened: Opened): void {
    if (opened === 'not-yet' || channel.failed || channel.opened) return
    if ('refuse' in opened) return this.fails(channel, opened.refuse)
    const { boot, next, ackable } = opened
    if (channel.boot !== undefined && channel.boot !== boot) {
      return this.fails(channel, 'its broker has restarted')
    }
    if (next < this.machine.ackedEnd(channel.to) || next > this.machine.end) {
      return this.fails(channel, `it goes on from entry ${next}`)
    }
    channel.boot = boot
    channel.opened = true
    channel.sent = next
    channel.hwSent = 0
    this.acked(channel, ackable)
    this.send(channel)
  }

  private send(channel: Channel): void {
    const { machine, process, items, number } = this
    const { profile } = process.world
    while (channel.opened) {
      const from = channel.sent
      const some = items.slice(from, from + profile.sendAtOnce)
      const { highWatermark } = machine
      if (some.length === 0 && highWatermark <= channel.hwSent) return
      channel.sent += some.length
      channel.hwSent = highWatermark
      const what = `entries ${from}..${channel.sent}, high watermark ${highWatermark}`
      const went = process.world.net.stream(process, channel.to, what, (to, onTime) => {
        const at = to.following.get(number)
        if (at === undefined) return
        at.takes({ leader: process, from, items: some, highWatermark, answered: onTime })
      })
      if (!went) channel.opened = false
    }
  }

  refused(by: NodeId, why: string): void {
    const channel = this.channels.find(({ to }) => to === by)
    if (channel !== undefined) this.fails(channel, why)
  }

  acknowledged(by: NodeId, end: number): void {
    const channel = this.channels.find(({ to }) => to === by)
    if (channel !== undefined) this.acked(channel, end)
  }

  private acked(channel: Channel, end: number): void {
    this.machine.acked(channel.to, end, this.process.now)
    this.moved()
  }

  private fails(channel: Channel, why: string): void {
    if (channel.failed) return
    channel.failed = true
    this.process.world.say(`${this.process.broker.name}: a follower has failed: ${why}`)
    this.machine.failed(channel.to, why)
    this.moved()
  }

  // ---- ends

  learned(news: SegmentNews): void {
    this.machine.learned(news)
    this.moved()
  }

  /** For an end as of an attempt. */
  asked(attempt: number, why: EndReason): void {
    const known = this.process.segmentOf(this.number)?.attempt
    if (known === attempt) this.rolls(why)
  }

  rolls(why: EndReason): void {
    this.machine.roll(why)
    this.moved()
  }

  fence(answer: (answer: FenceAnswer) => void): void {
    const { machine, process, number } = this
    const tell = (): void => {
      const { unsure } = process.broker.disk.segment(number)
      const { durableEnd: end, highWatermark } = machine
      answer({ boot: process.boot, end, highWatermark, unsure })
      process.world.seize(process, 'a fence was answered')
    }
    if (this.fenced === 'durable') return tell()
    machine.fence()
    if (this.fenced === 'queued') return
    this.fenced = 'queued'
    process.world.say(`${process.broker.name} fences segment ${number}, which it leads`)
    process.broker.disk.write({ kind: 'fence', segment: number }, () => {
      this.fenced = 'durable'
      tell()
    })
  }

  moved(): void {
    const { machine, process } = this
    if (machine.highWatermark > this.hwSeen) {
      this.hwSeen = machine.highWatermark
      process.world.truth.visible(this.number, this.hwSeen, `${process.broker.name}, its leader,`)
      this.pump()
    }
    this.answer()
    if (machine.given === this.given) return
    this.given = machine.given
    if (this.given === undefined) return
    const { attempt, end, failed, why } = this.given
    const without = failed.length === 0 ? '' : `, without ${failed.length}`
    process.world.say(
      `${process.broker.name} gives end ${end} of segment ${this.number} under attempt ${attempt}: ${why}${without}`,
    )
    process.world.seize(process, 'an end was given')
  }

  private answer(): void {
    const { machine, process } = this
    if (this.waiting.length === 0) return
    const ended = machine.mode === 'ended'
    const kept: Waiting[] = []
    for (const one of this.waiting) {
      if (one.entry < machine.highWatermark) {
        process.world.truth.acknowledged(this.number, one.entry)
        one.done(true)
      } else if (ended) one.done(false)
      else kept.push(one)
    }
    this.waiting = kept
  }
}

function describe(opened: Opened): string {
  if (opened === 'not-yet') return 'not yet'
  return 'refuse' in opened ? `no: ${opened.refuse}` : `at ${opened.next}`
}

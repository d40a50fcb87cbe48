// A Raft group in virtual time under one seed: machines with disks, clocks that run up to 5 % apart, and a network that loses,
// doubles, delays and overtakes messages and is cut in places, either way. Clients propose and read; operators change the
// members and hand leadership over. First there is trouble (trouble.ts) and nothing may ever be wrong (truth.ts); then it
// ends, but for one fault that may stay, and the group must work:
//
//   |<------- trouble ------->|<-- settles -->|<------ peace ------>|
//    safety, always                            one leader, which stays; proposals are answered; all connected members follow

import { AssertionFailed } from '../../../src/base/assert.ts'
import { utf8 } from '../../../src/base/bytes.ts'
import { type Prng, prng } from '../../../src/base/prng.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import type { Entry, Message } from '../../../src/model/raft.ts'
import { SimClock } from '../../../src/sim/ports/clock.ts'
import { emptyDisk, NOBODY } from './disk.ts'
import { Machine, type World } from './driver.ts'
import {
  MACHINES,
  PEACE_LASTS,
  PEACE_SETTLES,
  type Profile,
  profileOf,
  TROUBLE_LASTS,
} from './profile.ts'
import { describe, memberId, name } from './story.ts'
import { makePeace, makeTrouble, seize, spread } from './trouble.ts'
import { Truth } from './truth.ts'

export interface RaftRun {
  readonly violations: readonly string[]
  readonly story: readonly string[]
  readonly acknowledged: number
  readonly readsAnswered: number
  readonly leaders: number
  /** Entries that were written and others took the place of. */
  readonly conflicts: number
}

/** With `tell`, the story has every message. */
export function runRaft(seed: number, tell = false): RaftRun {
  return new Group(seed, tell).whole()
}

export class Group implements World {
  readonly clock: SimClock = new SimClock()
  readonly chance: Prng
  readonly profile: Profile
  readonly truth: Truth
  readonly machines: readonly Machine[]
  calm = false
  /** Nobody proposes to this one for a while; to whoever takes its place, yes. */
  idle: { readonly leader: Machine | undefined; readonly until: number } | undefined
  /** What is done when somebody next asks for a vote. */
  onVoteAsked: ((from: Machine, to: Machine) => void) | undefined
  /** What is done when the next leader is elected, before it has said so. */
  onElected: ((leader: Machine) => void) | undefined
  /** No other trouble is made until then. */
  scriptUntil = 0
  /** Links that carry nothing: "from>to". */
  readonly cut: Set<string> = new Set()
  private readonly story: string[] = []
  private readonly tell: boolean
  private ids = 0
  private members = 0

  constructor(seed: number, tell: boolean) {
    this.tell = tell
    this.chance = prng(seed)
    this.profile = profileOf(this.chance)
    const { voters, learners } = this.profile
    const ids = Array.from({ length: MACHINES }, () => this.newMember())
    const founders = {
      voters: ids.slice(0, voters),
      learners: ids.slice(voters, voters + learners),
    }
    this.truth = new Truth(founders, (line) => this.say(line))
    this.machines = ids.map((id, i) => {
      const disk = emptyDisk(id, i < voters + learners ? founders : NOBODY)
      return new Machine(this, disk, this.clockRate())
    })
  }

  whole(): RaftRun {
    const { electionTimeoutMs, tickMs, clientMs, troubleMs } = this.profile
    if (this.tell) this.say(JSON.stringify(this.profile))
    this.guarded(() => {
      for (const machine of this.machines) machine.start()
    })
    this.every(tickMs, () => {
      for (const machine of this.machines) machine.tick()
    })
    this.every(clientMs, () => this.client())
    const trouble = (): void => {
      if (this.calm) return
      if (this.clock.monotonic() >= this.scriptUntil) makeTrouble(this)
      this.clock.after(spread(this.chance, troubleMs), trouble)
    }
    this.clock.after(electionTimeoutMs, trouble)
    this.runFor(TROUBLE_LASTS * electionTimeoutMs)
    this.calm = true
    const idleUntil = this.clock.monotonic() + (PEACE_SETTLES + PEACE_LASTS / 2) * electionTimeoutMs
    this.idle = this.profile.idlePeace ? { leader: undefined, until: idleUntil } : undefined
    this.onVoteAsked = undefined
    this.onElected = undefined
    let unheard: ReadonlySet<Machine> = new Set()
    this.guarded(() => {
      unheard = makePeace(this)
    })
    this.runFor(PEACE_SETTLES * electionTimeoutMs)
    this.peace(unheard)
    const { truth, story } = this
    return {
      violations: truth.violations,
      story,
      acknowledged: truth.acknowledged,
      readsAnswered: truth.reads,
      leaders: truth.leaders.size,
      conflicts: truth.conflicts,
    }
  }

  private clockRate(): number {
    const { clockSpread, clocksAtEnds } = this.profile
    const from = this.chance.float() * 2 - 1
    return 1 + clockSpread * (clocksAtEnds ? Math.sign(from) : from)
  }

  // Time.

  private every(ms: number, run: () => void): void {
    this.clock.after(ms, () => {
      run()
      this.every(ms, run)
    })
  }

  private runFor(ms: number): void {
    const end = this.clock.monotonic() + ms
    while (this.truth.violations.length === 0 && this.clock.monotonic() < end) {
      this.guarded(() => this.clock.step())
    }
  }

  /** What a member promised itself is a promise to the group too. */
  private guarded(run: () => void): void {
    try {
      run()
    } catch (error) {
      if (!(error instanceof AssertionFailed)) throw error
      this.truth.violation(`a member's own promise is broken: ${error.message}`)
    }
  }

  say(line: string): void {
    this.story.push(`${this.clock.monotonic().toFixed(2).padStart(9)} ${line}`)
  }

  // The network.

  send(message: Message): void {
    const { chance, profile, calm } = this
    if (message.kind === 'vote' && this.onVoteAsked !== undefined) this.voteAsked(message)
    const lost =
      this.cut.has(`${message.from}>${message.to}`) || (!calm && chance.float() < profile.lossShare)
    if (this.tell) this.say(`  ${describe(message)}${lost ? '   (lost)' : ''}`)
    if (lost) return
    const copies = !calm && chance.float() < profile.doubleShare ? 2 : 1
    for (let i = 0; i < copies; i++) {
      this.clock.after(this.delay(), () => {
        if (this.tell) this.say(`  ${describe(message)}   (comes)`)
        this.machineOf(message.to)?.receive(message)
      })
    }
  }

  private voteAsked(message: Message): void {
    const from = this.machineOf(message.from)
    const to = this.machineOf(message.to)
    if (from !== undefined && to !== undefined) this.onVoteAsked?.(from, to)
  }

  private delay(): number {
    const { chance, profile, calm } = this
    const { netMs, lateMs, lateShare, electionTimeoutMs } = profile
    // In peace links are streams: nothing overtakes.
    if (calm) return Math.min(netMs, electionTimeoutMs / 30)
    return chance.float() < lateShare ? chance.float() * lateMs : netMs * (0.1 + chance.float())
  }

  syncMs(machine: Machine): number {
    const { chance, profile, calm } = this
    const { syncMs, slowSyncShare, electionTimeoutMs } = profile
    if (calm) return Math.min(syncMs, electionTimeoutMs / 30) * chance.float()
    const slow = chance.float() < slowSyncShare || this.clock.monotonic() < machine.stuckUntil
    return slow ? electionTimeoutMs * chance.float() * 2 : syncMs * chance.float()
  }

  // Who is there.

  newMember(): NodeId {
    return memberId(this.members++)
  }

  machineOf(member: NodeId): Machine | undefined {
    return this.machines.find((machine) => machine.member === member)
  }

  /** All that believe it. */
  believers(): Machine[] {
    return this.machines.filter(({ leads }) => leads)
  }

  anyMachine(): Machine {
    return this.machines[this.chance.below(this.machines.length)] as Machine
  }

  startAfter(machine: Machine, ms: number): void {
    this.clock.after(ms, () => {
      // Whoever is down when peace comes stays down.
      if (!this.calm) machine.start()
    })
  }

  elected(machine: Machine): void {
    const { chance, profile, calm } = this
    const { onElected } = this
    this.onElected = undefined
    if (onElected !== undefined) return onElected(machine)
    if (calm || chance.float() >= profile.seizeShare) return
    // At once: what it has to say as a leader has not left yet.
    if (chance.below(2) === 0) seize(this, machine)
    else this.clock.after(chance.float() * profile.netMs * 4, () => seize(this, machine))
  }

  membersApplied({ index, payload }: Entry): void {
    if (payload.kind !== 'members') return
    const { voters, learners } = payload.members
    const { chance, profile, calm } = this
    if (calm) return
    for (const { member } of this.machines) {
      if (voters.includes(member) || learners.includes(member)) continue
      if (chance.below(3) > 0) continue
      const ms = chance.float() * profile.electionTimeoutMs
      this.clock.after(ms, () => {
        if (!this.calm) this.machineOf(member)?.removed(index)
      })
    }
  }

  // Clients.

  private client(): void {
    const { chance, calm } = this
    const believers = this.believers()
    const asked =
      !calm && chance.below(4) === 0 ? undefined : believers[chance.below(believers.length)]
    const machine = asked ?? this.anyMachine()
    if (chance.below(2) === 0 || this.isIdle(machine)) machine.read(`r${this.ids++}`)
    else {
      const id = `c${this.ids++}`
      machine.propose(id, utf8(id))
    }
  }

  private isIdle(machine: Machine): boolean {
    const { idle } = this
    if (idle === undefined || this.clock.monotonic() > idle.until) return false
    return idle.leader === undefined || idle.leader === machine
  }

  nextId(): string {
    return `m${this.ids++}`
  }

  // Peace.

  private peace(unheard: ReadonlySet<Machine>): void {
    const { truth, profile } = this
    if (truth.violations.length > 0) return
    const half = (PEACE_LASTS / 2) * profile.electionTimeoutMs
    const leadersBefore = truth.leaders.size
    const acknowledgedBefore = truth.acknowledged
    this.everybodyFollows(unheard, half)
    this.everybodyFollows(unheard, half)
    if (truth.violations.length > 0) return
    const changes = truth.leaders.size - leadersBefore
    if (changes > 2) truth.violation(`the leader changes ${changes} times in peace`)
    if (truth.acknowledged - acknowledgedBefore < 3) {
      truth.violation('hardly anything is acknowledged in peace')
    }
  }

  /** Whoever the leader can hear and be heard by has after some time all that was committed before. */
  private everybodyFollows(unheard: ReadonlySet<Machine>, ms: number): void {
    const committed = this.truth.answeredUpTo
    this.runFor(ms)
    if (this.truth.violations.length > 0) return
    for (const member of this.followers(unheard)) {
      const index = this.machineOf(member)?.state.index ?? 0
      if (index < committed) this.truth.violation(`${name(member)} is behind at ${index} in peace`)
    }
  }

  /** Members to and from which the leader's links are whole. */
  private followers(unheard: ReadonlySet<Machine>): NodeId[] {
    const leader = this.believers().find((machine) => !unheard.has(machine))
    if (leader?.raft === undefined) {
      this.truth.violation('nobody leads in peace')
      return []
    }
    const { voters, learners } = leader.raft.members
    return [...voters, ...learners].filter((member) => {
      const there = `${leader.member}>${member}`
      const back = `${member}>${leader.member}`
      const up = this.machineOf(member)?.raft !== undefined
      return up && !this.cut.has(there) && !this.cut.has(back)
    })
  }
}

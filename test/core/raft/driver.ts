// A machine that runs one member: it takes effects, writes them, sends and applies, as a broker will. Its process can be killed
// at any moment, stopped while its clock runs on, and its disk can be lost. What a driver owes the group beside
// `core/raft` stands here, so that it can be broken here:
//
//   - the next effects are taken when those before are durable
//   - a proposal is answered by the entry that bears its id, wherever that lies
//   - a machine that has lost its disk comes back as another member
//   - of a member whose removal has committed, the log may go; its term, its vote and where its log ended stay

import { assert } from '../../../src/base/assert.ts'
import type { Prng } from '../../../src/base/prng.ts'
import { Raft } from '../../../src/core/raft/raft.ts'
import type { Effects, MembersChange, RaftOptions } from '../../../src/core/raft/types.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import type { Entry, HardState, Message } from '../../../src/model/raft.ts'
import type { SimClock } from '../../../src/sim/ports/clock.ts'
import {
  afterEntry,
  type Disk,
  decodeState,
  emptyDisk,
  encodeState,
  FIRST_STATE,
  isDirty,
  NOBODY,
  type State,
  store,
} from './disk.ts'
import type { Profile } from './profile.ts'
import { describeMembers, name } from './story.ts'
import type { Truth } from './truth.ts'

export interface World {
  readonly clock: SimClock
  readonly chance: Prng
  readonly profile: Profile
  readonly truth: Truth
  /** No trouble is made any more. */
  readonly calm: boolean
  say(line: string): void
  send(message: Message): void
  syncMs(machine: Machine): number
  startAfter(machine: Machine, ms: number): void
  /** A member has begun to lead. */
  elected(machine: Machine): void
  /** A change of members was applied by somebody. */
  membersApplied(entry: Entry): void
}

const HELD_MAX = 300

const NO_EFFECTS: Effects = {
  messages: [],
  hardState: undefined,
  snapshot: undefined,
  installed: false,
  truncatedFrom: undefined,
  entries: [],
  messagesAfterSync: [],
  committed: [],
  reads: [],
  mark: { index: 0, term: 0 },
}

export class Machine {
  disk: Disk
  /** Undefined while the process is down. */
  raft: Raft | undefined
  /** Its syncs take longer than an election until then. */
  stuckUntil = 0
  state: State = FIRST_STATE
  private readonly world: World
  private readonly rate: number
  /** What an earlier life left on its way is meaningless. */
  private life = 0
  private paused = false
  private held: (() => void)[] = []
  /** On its way to the disk. */
  private writing: Effects | undefined
  private busy = false
  private commit = 0
  private readonly waiting = new Map<string, number>()
  private readonly reads = new Map<string, number>()
  private readyReads: { readonly id: string; readonly index: number }[] = []

  constructor(world: World, disk: Disk, rate: number) {
    this.world = world
    this.disk = disk
    this.rate = rate
    world.truth.disks.set(disk.member, disk)
  }

  get member(): NodeId {
    return this.disk.member
  }

  get leads(): boolean {
    return this.raft?.role === 'leader'
  }

  get now(): number {
    return this.world.clock.monotonic() * this.rate
  }

  // Its process.

  start(): void {
    if (this.raft !== undefined) return
    const { hardState, snapshot, entries, founders } = this.disk
    this.state = FIRST_STATE
    this.commit = snapshot?.index ?? 0
    if (snapshot !== undefined) this.takeOver(snapshot.data)
    this.world.truth.votes(this.member, hardState)
    const restored = { hardState, snapshot, entries: [...entries], members: founders }
    this.raft = new Raft(this.options(), restored, this.now)
    const log = `${this.raft.log.lastIndex}/${this.raft.log.lastTerm}`
    this.world.say(
      `${name(this.member)} starts in term ${hardState.term}, its log ends with ${log}`,
    )
    this.drive()
  }

  kill(): void {
    if (this.raft === undefined) return
    this.world.say(`${name(this.member)} is killed`)
    if (this.writing !== undefined) this.stored(this.cutShort(this.writing))
    this.end()
  }

  /** Of a write that was under way, none, all, or what comes first is there: the term and the vote before the entries. */
  private cutShort(effects: Effects): Effects {
    const { entries, hardState, snapshot } = effects
    const { chance } = this.world
    const kept =
      chance.below(2) === 0 ? entries.slice(0, chance.below(entries.length + 1)) : entries
    if (kept.length === entries.length) return chance.below(2) === 0 ? effects : NO_EFFECTS
    if (snapshot !== undefined) return NO_EFFECTS
    if (kept.length > 0) return { ...effects, entries: kept }
    return { ...NO_EFFECTS, hardState }
  }

  /** What is with it when a process ends is gone. */
  private end(): void {
    this.life++
    this.raft = undefined
    this.writing = undefined
    this.busy = false
    this.paused = false
    this.held = []
    this.waiting.clear()
    this.reads.clear()
    this.readyReads = []
  }

  pause(ms: number): void {
    if (this.raft === undefined || this.paused) return
    const { life } = this
    this.paused = true
    this.world.say(`${name(this.member)} stops for ${ms.toFixed(0)} ms`)
    this.world.clock.after(ms, () => {
      if (this.life === life) this.resume()
    })
  }

  /** What came meanwhile is taken in any order, and before its timers run. */
  private resume(): void {
    this.world.say(`${name(this.member)} goes on`)
    this.paused = false
    const { held, life } = this
    this.held = []
    while (held.length > 0) {
      const at = this.world.chance.below(held.length)
      const [run] = held.splice(at, 1)
      if (this.life === life && run !== undefined) run()
    }
  }

  /** A vote that it gave or an entry that it acknowledged may have been on the disk that is gone. */
  loseDisk(another: NodeId): void {
    this.kill()
    this.world.say(`${name(this.member)} loses its disk, and comes back as ${name(another)}`)
    this.disk = emptyDisk(another, NOBODY)
    this.world.truth.disks.set(this.disk.member, this.disk)
  }

  /** Its removal at `index` has committed. It may be a member again since then. */
  removed(index: number): void {
    const { raft } = this
    if (raft === undefined || this.busy || this.paused) return
    const { voters, learners } = raft.members
    const { membersIndex } = raft.log
    const isMember = voters.includes(this.member) || learners.includes(this.member)
    // A later change is not the end either before it has committed: who stays may need the entry from here.
    if (membersIndex > index && (isMember || membersIndex > raft.commit)) return
    this.world.say(`${name(this.member)} was removed by ${index} and forgets the group`)
    const hardState = whatStays(raft)
    this.end()
    Object.assign(this.disk, { ...emptyDisk(this.member, NOBODY), hardState })
    this.start()
  }

  private options(): RaftOptions {
    const { profile, chance } = this.world
    return { ...profile, id: this.member, chance: () => chance.float() }
  }

  // What comes from outside.

  tick(): void {
    const { raft, now } = this
    if (raft !== undefined && !this.paused && now >= raft.nextTick) this.turn((it) => it.tick(now))
  }

  receive(message: Message): void {
    this.turn((raft) => raft.receive(message, this.now))
  }

  propose(id: string, data: Uint8Array): void {
    this.turn((raft) => {
      const index = raft.propose(id, data)
      if (typeof index === 'number') this.waiting.set(id, index)
    })
  }

  read(id: string): void {
    const { answeredUpTo } = this.world.truth
    this.turn((raft) => {
      this.reads.set(id, answeredUpTo)
      raft.read(id, this.now)
    })
  }

  change(id: string, change: MembersChange): void {
    // Once it goes on, the members may be others, and the change one that nobody would ask for.
    if (this.paused) return
    this.turn((raft) => {
      const { members, commit } = raft
      const what = `${change.kind} ${name(change.node)}`
      const index = raft.change(id, change, this.now)
      if (typeof index !== 'number') return
      const then = describeMembers(raft.members)
      this.world.say(`${name(this.member)} takes ${what} at ${index}: ${then}`)
      if (change.kind === 'promote') {
        this.world.truth.promotes(this.member, members, change.node, commit)
      }
    })
  }

  handOver(to: NodeId): void {
    this.turn((raft) => {
      if (raft.handOver(to, this.now) !== undefined) return
      this.world.say(`${name(this.member)} hands over to ${name(to)}`)
    })
  }

  /** Once the process runs, if it is stopped now. */
  private turn(run: (raft: Raft) => void): void {
    if (this.paused) {
      if (this.held.length < HELD_MAX) this.held.push(() => this.turn(run))
      return
    }
    if (this.raft === undefined) return
    run(this.raft)
    this.drive()
  }

  // Effects.

  private drive(): void {
    const { raft, disk } = this
    const { truth } = this.world
    if (raft === undefined || this.busy || !raft.hasWork) return
    const effects = raft.take()
    const isNew = raft.role === 'leader' && !truth.leaders.has(raft.term)
    if (raft.role === 'leader') truth.leads(this.member, raft.term)
    if (raft.commit < this.commit) truth.violation(`the commit of ${name(this.member)} goes back`)
    this.commit = raft.commit
    if (isNew) this.world.elected(this)
    if (this.raft !== raft) return
    truth.writes(disk, effects)
    if (!this.sendAll(effects.messages)) return
    if (effects.installed && effects.snapshot !== undefined) this.takeOver(effects.snapshot.data)
    this.apply(raft, effects.committed)
    this.answerReads(effects)
    if (isDirty(effects)) this.write(raft, effects)
    else if (this.sendAll(effects.messagesAfterSync)) this.drive()
  }

  private write(raft: Raft, effects: Effects): void {
    const { life, world } = this
    this.writing = effects
    this.busy = true
    world.clock.after(world.syncMs(this), () => {
      if (this.life !== life) return
      this.writing = undefined
      this.stored(effects)
      const goOn = (): void => {
        this.busy = false
        raft.persisted(effects.mark)
        if (!raft.hasWork) this.world.truth.believes(this.disk, raft.members)
        if (this.sendAll(effects.messagesAfterSync)) this.drive()
      }
      if (this.paused) this.held.push(goOn)
      else goOn()
    })
  }

  private stored(effects: Effects): void {
    this.world.truth.stores(this.disk, effects)
    store(this.disk, effects)
  }

  /** False when the process dies over it. */
  private sendAll(messages: readonly Message[]): boolean {
    const { profile, chance, calm } = this.world
    for (const message of messages) {
      this.world.send(message)
      if (calm || !isPromise(message) || chance.float() >= profile.promiseCrashShare) continue
      this.kill()
      this.world.startAfter(this, chance.float() * profile.electionTimeoutMs)
      return false
    }
    return true
  }

  private takeOver(data: Uint8Array): void {
    const state = decodeState(data)
    this.world.truth.reaches(this.member, state)
    this.state = state ?? FIRST_STATE
  }

  private apply(raft: Raft, committed: readonly Entry[]): void {
    const { truth, chance, profile } = this.world
    for (const entry of committed) {
      if (entry.index !== this.state.index + 1) {
        truth.violation(`${name(this.member)} applies ${entry.index} after ${this.state.index}`)
      }
      this.state = afterEntry(this.state, entry)
      truth.applies(this.member, raft.term, entry, this.state)
      const answered = answeredBy(entry, this.waiting)
      if (answered !== undefined) {
        this.waiting.delete(answered)
        truth.answers(answered, entry)
      }
      if (entry.payload.kind === 'members') this.world.membersApplied(entry)
    }
    if (committed.length > 0 && chance.float() < profile.compactShare) {
      raft.compact(this.state.index, encodeState(this.state, name(this.member).slice(0, 1)))
    }
  }

  private answerReads({ reads }: Effects): void {
    for (const { id, index } of reads) {
      if (index === undefined) this.reads.delete(id)
      else this.readyReads.push({ id, index })
    }
    if (this.readyReads.length === 0) return
    const { state } = this
    for (const { id, index } of this.readyReads) {
      if (index > state.index) continue
      this.world.truth.answersRead(this.member, id, index, this.reads.get(id) ?? 0)
      this.world.truth.shows(state)
      this.reads.delete(id)
    }
    this.readyReads = this.readyReads.filter(({ index }) => index > state.index)
  }
}

/** Others may have been proposed for the same place by a leader of an older term. */
function answeredBy(
  { index: at, payload }: Entry,
  waiting: ReadonlyMap<string, number>,
): string | undefined {
  assert(at > 0, 'entries are numbered from 1')
  return payload.kind === 'command' && waiting.has(payload.id) ? payload.id : undefined
}

/**
 * Others may count on its vote still, by members of before: it must not vote twice in a term, nor for a log that lacks what
 * its own had.
 */
function whatStays(raft: Raft): HardState {
  return raft.remains
}

/** Others count on it as soon as it is said. */
function isPromise(message: Message): boolean {
  if (message.kind === 'vote-answer') return message.granted && !message.pre
  return message.kind === 'append-answer' && message.result.ok && message.result.match !== undefined
}

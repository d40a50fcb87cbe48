// A Raft group that does what a script says, and tells it as a dialogue. Nothing is left to chance: links deliver at once and in
// order, disks sync at once unless one is slow, and A's patience is the shortest, then B's, then C's.
//
//   at 300 ms
//     A -> B  would you vote for me in term 1? my log ends with 0/0
//     B -> A  would vote for you in term 1
//     A writes term 1, vote A
//
// A line that begins with # says what the script does.

import { utf8 } from '../../../src/base/bytes.ts'
import { Raft } from '../../../src/core/raft/raft.ts'
import type { Effects, MembersChange, RaftOptions } from '../../../src/core/raft/types.ts'
import type { NodeId } from '../../../src/model/ids.ts'
import type { Members, Message } from '../../../src/model/raft.ts'
import { type Disk, emptyDisk, isDirty, NOBODY, store } from './disk.ts'
import { describe, describeEntries, describeMembers, memberId, name } from './story.ts'

const ELECTION_MS = 300

interface Player {
  readonly id: NodeId
  readonly disk: Disk
  raft: Raft | undefined
  role: string
  /** Its disk does not sync until it is told to. */
  slow: boolean
  unsynced: Effects | undefined
}

const LETTERS = ['A', 'B', 'C', 'D', 'E']

export function idOf(letter: string): NodeId {
  return memberId(LETTERS.indexOf(letter))
}

export class Script {
  readonly lines: string[] = []
  now = 0
  private readonly options: Partial<RaftOptions>
  private readonly players = new Map<NodeId, Player>()
  private readonly cutLinks = new Set<string>()
  private mail: Message[] = []
  private told = -1
  private quiet = false

  /** The first `voters` letters found the group; the others are there, and know of nothing. */
  constructor(machines: number, voters: number, options: Partial<RaftOptions> = {}) {
    this.options = options
    const founders: Members = { voters: LETTERS.slice(0, voters).map(idOf), learners: [] }
    for (const [i, letter] of LETTERS.slice(0, machines).entries()) {
      const id = idOf(letter)
      const disk = emptyDisk(id, i < voters ? founders : NOBODY)
      const player = {
        id,
        disk,
        raft: undefined,
        role: 'follower',
        slow: false,
        unsynced: undefined,
      }
      this.players.set(id, player)
      this.boot(player)
    }
  }

  // What a script says.

  note(text: string): void {
    this.lines.push(`# ${text}`)
  }

  /** Time goes on, and whoever has to do something does it. */
  passes(ms: number): void {
    const end = this.now + ms
    for (;;) {
      const due = Math.min(...this.running().map(({ nextTick }) => nextTick))
      if (due > end) break
      this.now = Math.max(this.now, due)
      for (const raft of this.running()) if (raft.nextTick <= this.now) raft.tick(this.now)
      this.pump()
    }
    this.now = end
  }

  /** What the others say and do meanwhile is not told. */
  quietly(run: () => void): void {
    this.quiet = true
    run()
    this.quiet = false
  }

  /** Says what it is told only when it is refused. */
  act(letter: string, what: string, run: (raft: Raft, now: number) => unknown): unknown {
    const result = run(this.raft(letter), this.now)
    this.say(`${letter} ${what}${typeof result === 'string' ? `: refused, ${result}` : ''}`)
    this.pump()
    return result
  }

  propose(letter: string, id: string, bytes = 0): unknown {
    const data = bytes === 0 ? utf8(id) : new Uint8Array(bytes)
    return this.act(letter, `is proposed ${id}`, (raft) => raft.propose(id, data))
  }

  change(letter: string, kind: MembersChange['kind'], node: string): unknown {
    const what = `is told to ${kind} ${node}`
    return this.act(letter, what, (raft, now) => {
      return raft.change(`${kind} ${node}`, { kind, node: idOf(node) }, now)
    })
  }

  read(letter: string, id: string): void {
    this.act(letter, `is asked for read ${id}`, (raft, now) => raft.read(id, now))
  }

  compact(letter: string, index: number, bytes: number): void {
    const data = new Uint8Array(bytes)
    this.act(letter, `compacts up to ${index}`, (raft) => raft.compact(index, data))
  }

  handOver(letter: string, to: string): unknown {
    const what = `is told to hand over to ${to}`
    return this.act(letter, what, (raft, now) => raft.handOver(idOf(to), now))
  }

  cut(from: string, to: string): void {
    this.cutLinks.add(`${idOf(from)}>${idOf(to)}`)
    this.cutLinks.add(`${idOf(to)}>${idOf(from)}`)
  }

  /** One way. */
  deafen(to: string, from: string): void {
    this.cutLinks.add(`${idOf(from)}>${idOf(to)}`)
  }

  isolate(letter: string): void {
    for (const other of LETTERS) if (other !== letter) this.cut(letter, other)
  }

  heal(): void {
    this.cutLinks.clear()
  }

  kill(letter: string): void {
    const player = this.player(letter)
    player.raft = undefined
    player.unsynced = undefined
    this.say(`${letter} is killed`)
  }

  start(letter: string): void {
    this.boot(this.player(letter))
    const { lastIndex, lastTerm } = this.raft(letter).log
    this.say(`${letter} starts, its log ends with ${lastIndex}/${lastTerm}`)
    this.pump()
  }

  /** As after its removal. */
  forget(letter: string): void {
    const player = this.player(letter)
    const hardState = this.raft(letter).remains
    Object.assign(player.disk, { ...emptyDisk(player.id, NOBODY), hardState })
    this.boot(player)
    this.say(`${letter} deletes the group's log`)
  }

  /** A message comes that was long on its way. */
  comes(message: Message): void {
    this.say(`${describe(message)}   (late)`)
    this.player(name(message.to)).raft?.receive(message, this.now)
    this.pump()
  }

  slow(letter: string): void {
    this.player(letter).slow = true
  }

  syncs(letter: string): void {
    const player = this.player(letter)
    player.slow = false
    this.say(`${letter} has synced`)
    this.synced(player)
    this.pump()
  }

  raft(letter: string): Raft {
    const { raft } = this.player(letter)
    if (raft === undefined) throw new Error(`${letter} is down`)
    return raft
  }

  // What comes of it.

  private player(letter: string): Player {
    const player = this.players.get(idOf(letter))
    if (player === undefined) throw new Error(`there is no ${letter}`)
    return player
  }

  private running(): Raft[] {
    return [...this.players.values()].flatMap(({ raft }) => (raft === undefined ? [] : [raft]))
  }

  private boot(player: Player): void {
    const { hardState, snapshot, entries, founders } = player.disk
    const patience = [...this.players.keys()].indexOf(player.id) * 0.3
    const options: RaftOptions = {
      id: player.id,
      electionTimeoutMs: ELECTION_MS,
      heartbeatMs: 100,
      appendBytesMax: 1000,
      appendsInFlightMax: 4,
      snapshotPartBytes: 1000,
      uncommittedBytesMax: 10_000,
      entriesKept: 0,
      chance: () => patience,
      ...this.options,
    }
    const restored = { hardState, snapshot, entries: [...entries], members: founders }
    player.raft = new Raft(options, restored, this.now)
    player.role = player.raft.role
  }

  private say(line: string): void {
    if (this.quiet) return
    if (this.told !== this.now) this.lines.push(`at ${Math.round(this.now)} ms`)
    this.told = this.now
    this.lines.push(`  ${line}`)
  }

  /** Until nobody has anything to do. */
  private pump(): void {
    for (;;) {
      for (const player of this.players.values()) this.drive(player)
      const message = this.mail.shift()
      if (message === undefined) return
      this.players.get(message.to)?.raft?.receive(message, this.now)
    }
  }

  private drive(player: Player): void {
    const { raft, id } = player
    while (raft?.hasWork === true && player.unsynced === undefined) {
      const effects = raft.take()
      if (raft.role === 'leader' && player.role !== 'leader') {
        this.say(`${name(id)} leads in term ${raft.term}`)
      }
      this.send(effects.messages)
      if (raft.role !== 'leader' && player.role === 'leader') this.say(`${name(id)} steps down`)
      player.role = raft.role
      this.tell(name(id), effects)
      player.unsynced = effects
      if (!player.slow || !isDirty(effects)) this.synced(player)
    }
  }

  private tell(who: string, effects: Effects): void {
    const { hardState, snapshot, installed, truncatedFrom, entries, committed, reads } = effects
    const written: string[] = []
    if (hardState !== undefined) {
      const vote = hardState.vote === undefined ? 'no vote yet' : `vote ${name(hardState.vote)}`
      written.push(`term ${hardState.term}, ${vote}`)
    }
    if (installed) written.push('another log')
    if (snapshot !== undefined) {
      written.push(`a snapshot after ${snapshot.index} (${describeMembers(snapshot.members)})`)
    }
    if (truncatedFrom !== undefined && !installed) written.push(`nothing from ${truncatedFrom} on`)
    if (entries.length > 0) written.push(describeEntries(entries))
    if (written.length > 0) this.say(`${who} writes ${written.join('; ')}`)
    if (committed.length > 0) this.say(`${who} applies ${describeEntries(committed)}`)
    for (const { id, index } of reads) {
      const answer = index === undefined ? 'ask the leader' : `the state after ${index}`
      this.say(`${who} answers read ${id}: ${answer}`)
    }
  }

  private synced(player: Player): void {
    const effects = player.unsynced
    player.unsynced = undefined
    if (effects === undefined) return
    store(player.disk, effects)
    player.raft?.persisted(effects.mark)
    this.send(effects.messagesAfterSync)
  }

  private send(messages: readonly Message[]): void {
    for (const message of messages) {
      const lost = this.cutLinks.has(`${message.from}>${message.to}`)
      this.say(`${describe(message)}${lost ? '   (lost)' : ''}`)
      if (!lost) this.mail.push(message)
    }
  }
}

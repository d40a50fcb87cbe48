// A Raft group in virtual time under one seed: members with disks, clocks that run up to 5 % apart, and a network that loses,
// doubles, delays and overtakes messages and is cut in places, either way. Clients propose and read; operators change the
// members and hand leadership over. Beside it the truth, which shares nothing with what it judges [I13].

import { fromUtf8, utf8 } from '../../../src/base/bytes.ts'
import { type Prng, prng } from '../../../src/base/prng.ts'
import { Raft } from '../../../src/core/raft/raft.ts'
import type { Effects, MembersChange, RaftOptions } from '../../../src/core/raft/types.ts'
import { type NodeId, nodeId } from '../../../src/model/ids.ts'
import type { Entry, HardState, Members, Message, Snapshot } from '../../../src/model/raft.ts'

const NODES = 5
const TROUBLE_MS = 20_000
const CALM_MS = 15_000
const ELECTION_MS = 300
const HEARTBEAT_MS = 50

interface Stored {
  hardState: HardState
  snapshot: Snapshot | undefined
  entries: Entry[]
}

interface Node {
  readonly id: NodeId
  readonly rate: number
  readonly stored: Stored
  /** Undefined while the process is down. */
  raft: Raft | undefined
  /** Of this life; what an earlier one left on its way is meaningless. */
  life: number
  syncing: boolean
  /** Ids of the commands that its state machine holds, in order. */
  state: string[]
  appliedIndex: number
  reads: Map<string, number>
  waitingReads: { readonly id: string; readonly index: number }[]
}

interface Event {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

export interface RaftRun {
  readonly violations: readonly string[]
  readonly story: readonly string[]
  readonly acknowledged: number
  readonly readsAnswered: number
  readonly leaders: number
}

export function runRaft(seed: number): RaftRun {
  return new Group(seed).whole()
}

class Group {
  private readonly chance: Prng
  private readonly nodes: Node[]
  private readonly first: Members
  private events: Event[] = []
  private order = 0
  private now = 0
  private calm = false
  private readonly cut = new Set<string>()
  private readonly lossShare: number
  private readonly story: string[] = []
  // The truth.
  private readonly violations: string[] = []
  private readonly leaderOf = new Map<number, NodeId>()
  private readonly written = new Map<string, string>()
  private readonly applied = new Map<number, string>()
  private readonly appliedAt = new Map<string, number>()
  private readonly proposed = new Map<string, NodeId>()
  private readonly acknowledged = new Set<string>()
  private readonly readsFrom = new Map<string, number>()
  private readsAnswered = 0
  private ids = 0

  constructor(seed: number) {
    this.chance = prng(seed)
    this.lossShare = this.chance.below(3) === 0 ? 0 : this.chance.float() * 0.2
    const ids = Array.from({ length: NODES }, (_, i) => nodeId(String(i + 1).repeat(32)))
    const voters = ids.slice(0, [1, 3, 3, 5][this.chance.below(4)])
    this.first = { voters, learners: [] }
    this.nodes = ids.map((id) => ({
      id,
      rate: 0.975 + this.chance.float() * 0.05,
      stored: { hardState: { term: 0, vote: undefined }, snapshot: undefined, entries: [] },
      raft: undefined,
      life: 0,
      syncing: false,
      state: [],
      appliedIndex: 0,
      reads: new Map(),
      waitingReads: [],
    }))
  }

  whole(): RaftRun {
    for (const node of this.nodes) this.start(node)
    this.every(10, () => this.tickAll())
    this.every(25, () => this.client())
    this.every(400, () => {
      if (!this.calm) this.trouble()
    })
    this.runUntil(TROUBLE_MS)
    this.calm = true
    this.cut.clear()
    this.say('the trouble ends')
    for (const node of this.nodes) if (node.raft === undefined) this.start(node)
    this.runUntil(TROUBLE_MS + CALM_MS)
    this.checkEnd()
    return {
      violations: this.violations,
      story: this.story,
      acknowledged: this.acknowledged.size,
      readsAnswered: this.readsAnswered,
      leaders: this.leaderOf.size,
    }
  }

  // Time.

  private after(ms: number, run: () => void): void {
    const event = { at: this.now + ms, order: this.order++, run }
    let i = this.events.length
    while (i > 0 && (this.events[i - 1] as Event).at > event.at) i--
    this.events.splice(i, 0, event)
  }

  private every(ms: number, run: () => void): void {
    this.after(ms, () => {
      run()
      this.every(ms, run)
    })
  }

  private runUntil(end: number): void {
    while (this.violations.length === 0) {
      const next = this.events[0]
      if (next === undefined || next.at > end) break
      this.events.shift()
      this.now = next.at
      next.run()
    }
    this.now = end
  }

  private say(line: string): void {
    this.story.push(`${this.now.toFixed(1).padStart(9)} ${line}`)
  }

  private violation(what: string): void {
    this.violations.push(what)
    this.say(`VIOLATION: ${what}`)
  }

  // Members.

  private start(node: Node): void {
    const { hardState, snapshot, entries } = node.stored
    node.life++
    node.syncing = false
    node.state = snapshot === undefined ? [] : decode(snapshot.data)
    node.appliedIndex = snapshot?.index ?? 0
    node.reads = new Map()
    node.waitingReads = []
    const restored = { hardState, snapshot, entries: [...entries], members: this.first }
    node.raft = new Raft(this.options(node.id), restored, this.clock(node))
    this.say(`${name(node.id)} starts in term ${hardState.term}`)
    this.drive(node)
  }

  private options(id: NodeId): RaftOptions {
    return {
      id,
      electionTimeoutMs: ELECTION_MS,
      heartbeatMs: HEARTBEAT_MS,
      appendBytesMax: 500,
      appendsInFlightMax: 4,
      snapshotPartBytes: 64,
      uncommittedBytesMax: 10_000,
      entriesKept: 3,
      chance: () => this.chance.float(),
    }
  }

  private clock(node: Node): number {
    return this.now * node.rate
  }

  private kill(node: Node): void {
    node.raft = undefined
    node.life++
    this.say(`${name(node.id)} is killed`)
  }

  private tickAll(): void {
    for (const node of this.nodes) {
      node.raft?.tick(this.clock(node))
      this.drive(node)
    }
  }

  /** Does what the member wants, if it does not wait for its disk. */
  private drive(node: Node): void {
    const { raft } = node
    if (raft === undefined || node.syncing) return
    const effects = raft.take()
    if (raft.role === 'leader') this.noteLeader(raft.term, node.id)
    this.noteWritten(effects.entries)
    for (const message of effects.messages) this.send(message)
    if (effects.installed && effects.snapshot !== undefined) {
      node.state = decode(effects.snapshot.data)
      node.appliedIndex = effects.snapshot.index
    }
    this.apply(node, effects.committed)
    this.noteReads(node, effects)
    const { life } = node
    const dirty =
      effects.hardState !== undefined ||
      effects.snapshot !== undefined ||
      effects.truncatedFrom !== undefined ||
      effects.entries.length > 0
    if (!dirty) {
      for (const message of effects.messagesAfterSync) this.send(message)
      return
    }
    node.syncing = true
    this.after(this.chance.float() * 15, () => {
      // A crash in the middle of a write: it may be there, whole, since nothing says otherwise.
      if (node.life !== life && this.chance.below(2) === 0) return
      if (node.life !== life && node.life !== life + 1) return
      store(node.stored, effects)
      if (node.life !== life) return
      node.syncing = false
      raft.persisted(effects.mark)
      for (const message of effects.messagesAfterSync) this.send(message)
      this.drive(node)
    })
  }

  private apply(node: Node, committed: readonly Entry[]): void {
    for (const { index, payload } of committed) {
      if (index !== node.appliedIndex + 1) {
        this.violation(`${name(node.id)} applies ${index} after ${node.appliedIndex}`)
      }
      node.appliedIndex = index
      const id = payload.kind === 'empty' ? '' : payload.id
      const other = this.applied.get(index)
      if (other !== undefined && other !== id) {
        this.violation(`${name(node.id)} applies '${id}' at ${index}, another applied '${other}'`)
      }
      this.applied.set(index, id)
      if (payload.kind !== 'command') continue
      const at = this.appliedAt.get(id)
      if (at !== undefined && at !== index) this.violation(`${id} is applied at ${at} and ${index}`)
      this.appliedAt.set(id, index)
      node.state.push(id)
      if (this.proposed.get(id) === node.id) this.acknowledged.add(id)
    }
    const { raft } = node
    if (raft !== undefined && committed.length > 0 && this.chance.below(12) === 0) {
      raft.compact(node.appliedIndex, encode(node.state))
    }
  }

  // Clients.

  private client(): void {
    const node = this.anyNode()
    const { raft } = node
    if (raft === undefined) return
    if (this.chance.below(3) === 0) {
      const id = `r${this.ids++}`
      this.readsFrom.set(id, this.acknowledged.size)
      raft.read(id, this.clock(node))
    } else {
      const id = `c${this.ids++}`
      this.proposed.set(id, node.id)
      raft.propose(id, utf8(id))
    }
    this.drive(node)
  }

  private noteReads(node: Node, { reads }: Effects): void {
    for (const { id, index } of reads) {
      if (index !== undefined) node.waitingReads.push({ id, index })
    }
    const ready = node.waitingReads.filter(({ index }) => index <= node.appliedIndex)
    node.waitingReads = node.waitingReads.filter(({ index }) => index > node.appliedIndex)
    for (const { id } of ready) {
      this.readsAnswered++
      const seen = new Set(node.state)
      const due = [...this.acknowledged].slice(0, this.readsFrom.get(id))
      const missed = due.find((command) => !seen.has(command))
      if (missed !== undefined) {
        this.violation(`${name(node.id)} answers read ${id} without ${missed}, acknowledged before`)
      }
    }
  }

  // Trouble.

  private trouble(): void {
    const node = this.anyNode()
    const other = this.anyNode()
    switch (this.chance.below(7)) {
      case 0:
        if (node.raft === undefined) return this.start(node)
        this.kill(node)
        this.after(this.chance.float() * 600, () => {
          if (node.raft === undefined) this.start(node)
        })
        return
      case 1:
        this.cut.add(`${node.id}>${other.id}`)
        if (this.chance.below(2) === 0) this.cut.add(`${other.id}>${node.id}`)
        return
      case 2:
        for (const one of this.nodes) {
          this.cut.add(`${node.id}>${one.id}`)
          this.cut.add(`${one.id}>${node.id}`)
        }
        this.say(`${name(node.id)} is cut off`)
        return
      case 3:
        this.cut.clear()
        this.say('all links are whole')
        return
      case 4:
      case 5:
        return this.change(other.id)
      case 6: {
        const leader = this.nodes.find(({ raft }) => raft?.role === 'leader')
        if (leader?.raft === undefined) return
        const refusal = leader.raft.handOver(other.id, this.clock(leader))
        this.say(`${name(leader.id)} hands over to ${name(other.id)}: ${refusal ?? 'yes'}`)
        this.drive(leader)
      }
    }
  }

  private change(node: NodeId): void {
    const leader = this.nodes.find(({ raft }) => raft?.role === 'leader')
    if (leader?.raft === undefined) return
    const kinds = ['add-learner', 'promote', 'remove'] as const
    const kind = kinds[this.chance.below(3)] ?? 'promote'
    const change: MembersChange = { kind, node }
    const result = leader.raft.change(`m${this.ids++}`, change, this.clock(leader))
    if (typeof result === 'number') this.say(`${name(leader.id)} begins ${kind} ${name(node)}`)
    this.drive(leader)
  }

  private anyNode(): Node {
    return this.nodes[this.chance.below(NODES)] as Node
  }

  private send(message: Message): void {
    if (this.cut.has(`${message.from}>${message.to}`)) return
    if (!this.calm && this.chance.float() < this.lossShare) return
    const copies = !this.calm && this.chance.float() < this.lossShare / 4 ? 2 : 1
    for (let i = 0; i < copies; i++) {
      const slow = this.chance.below(30) === 0 ? 300 : 10
      this.after(0.5 + this.chance.float() * slow, () => {
        const to = this.nodes.find(({ id }) => id === message.to)
        if (to?.raft === undefined) return
        to.raft.receive(message, this.clock(to))
        this.drive(to)
      })
    }
  }

  // The truth.

  private noteLeader(term: number, id: NodeId): void {
    const known = this.leaderOf.get(term)
    if (known === undefined) this.say(`${name(id)} leads in term ${term}`)
    else if (known !== id) this.violation(`${name(known)} and ${name(id)} lead in term ${term}`)
    this.leaderOf.set(term, id)
  }

  private noteWritten(entries: readonly Entry[]): void {
    for (const { index, term, payload } of entries) {
      const id = payload.kind === 'empty' ? '' : payload.id
      const known = this.written.get(`${index}/${term}`)
      if (known !== undefined && known !== id) {
        this.violation(`entry ${index} of term ${term} is '${known}' here and '${id}' there`)
      }
      this.written.set(`${index}/${term}`, id)
    }
  }

  private checkEnd(): void {
    if (this.violations.length > 0) return
    const leader = this.nodes.find(({ raft }) => raft?.role === 'leader')
    if (leader?.raft === undefined) return this.violation('nobody leads when all is well again')
    const { voters, learners } = leader.raft.members
    for (const id of [...voters, ...learners]) {
      const node = this.nodes.find((one) => one.id === id) as Node
      const behind = leader.appliedIndex - node.appliedIndex
      if (behind > 20) this.violation(`${name(id)} is ${behind} entries behind when all is well`)
    }
    const seen = new Set(leader.state)
    for (const id of this.acknowledged) {
      if (!seen.has(id)) this.violation(`${id} was acknowledged and is gone`)
    }
    // Of the last 300 ids about 200 are proposals, one in five of them to the leader.
    const late = [...this.acknowledged].filter((id) => Number(id.slice(1)) > this.ids - 300)
    if (late.length < 10) this.violation('hardly anything is acknowledged when all is well again')
  }
}

function store(stored: Stored, effects: Effects): void {
  const { hardState, snapshot, truncatedFrom, entries, installed } = effects
  if (hardState !== undefined) stored.hardState = hardState
  if (snapshot !== undefined) stored.snapshot = snapshot
  if (installed) stored.entries = []
  if (truncatedFrom !== undefined) {
    stored.entries = stored.entries.filter(({ index }) => index < truncatedFrom)
  }
  stored.entries.push(...entries)
  const covered = stored.snapshot?.index ?? 0
  if (snapshot !== undefined) stored.entries = stored.entries.filter((e) => e.index > covered)
}

function name(id: NodeId): string {
  return `node ${id.slice(0, 1)}`
}

function encode(state: readonly string[]): Uint8Array {
  return utf8(state.join(' '))
}

function decode(data: Uint8Array): string[] {
  return data.length === 0 ? [] : fromUtf8(data).split(' ')
}

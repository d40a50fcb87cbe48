// The brokers of the cluster as a coordinator needs them: who is there, in which start, and who is to be given nothing. Looked at
// now and then; whoever depends on it is told when something has changed.
//
// A broker that nobody has spoken of is taken for alive at first: after a start of the whole cluster the first coordinator has
// not met the others yet, and would take all that they lead away from them.

import type { NodeRecord } from '../../core/metadata/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { SeenBroker } from './types.ts'

/** After this broker's start. */
const UNKNOWN_ALIVE_MS = 10_000
/** One that has said that its disk is full is heard of it again before that, or has room. */
const FULL_FRESH_MS = 5000

export interface BrokersOptions {
  seen(): readonly SeenBroker[]
  /** From shard 0. */
  nodes(): ReadonlyMap<NodeId, NodeRecord>
  readonly nowMs: number
}

interface Known extends SeenBroker {
  readonly role: NodeRecord['role'] | undefined
}

export class Brokers {
  private readonly options: BrokersOptions
  private readonly startedMs: number
  private known = new Map<NodeId, Known>()
  private patient = true
  private readonly goneSince = new Map<NodeId, number>()
  /** Brokers that have said that they are about to stop, in which start. */
  private readonly stopping = new Map<NodeId, number>()
  /** Brokers whose disk is full, and when they last said so. */
  private readonly full = new Map<NodeId, number>()

  constructor(options: BrokersOptions) {
    this.options = options
    this.startedMs = options.nowMs
    this.look(options.nowMs)
  }

  /** Whether anything is other than at the last look. */
  look(nowMs: number): boolean {
    const nodes = this.options.nodes()
    const known = new Map<NodeId, Known>()
    let differs = false
    for (const broker of this.options.seen()) {
      const { node } = broker
      const one = { ...broker, role: nodes.get(node)?.role }
      known.set(node, one)
      const before = this.known.get(node)
      if (before === undefined || !isSame(before, one)) differs = true
    }
    if (known.size !== this.known.size) differs = true
    if (this.patient && nowMs - this.startedMs >= UNKNOWN_ALIVE_MS) {
      this.patient = false
      differs = true
    }
    for (const [node, saidMs] of this.full) {
      if (nowMs - saidMs < FULL_FRESH_MS) continue
      this.full.delete(node)
      differs = true
    }
    this.known = known
    this.lookForGone(nowMs)
    return differs
  }

  private lookForGone(nowMs: number): void {
    for (const { node, alive } of this.known.values()) {
      if (alive) this.goneSince.delete(node)
      else if (!this.goneSince.has(node)) this.goneSince.set(node, nowMs)
    }
    if (this.patient) return
    // Whom nobody has spoken of since this broker started has been away for at least that long.
    for (const node of this.options.nodes().keys()) {
      if (!this.known.has(node) && !this.goneSince.has(node)) this.goneSince.set(node, nowMs)
    }
  }

  goneFor(ms: number, nowMs: number): ReadonlySet<NodeId> {
    const gone = new Set<NodeId>()
    for (const [node, since] of this.goneSince) if (nowMs - since >= ms) gone.add(node)
    return gone
  }

  /** As far as this broker has seen it. */
  deadSince(node: NodeId): number | undefined {
    return this.goneSince.get(node)
  }

  alive(node: NodeId): boolean {
    return this.known.get(node)?.alive ?? (this.patient && !this.isRemoved(node))
  }

  private isRemoved(node: NodeId): boolean {
    return this.options.nodes().get(node)?.role === 'removed'
  }

  /** It is being drained, or was removed: it is given nothing, and what it has goes to others. */
  leaving(node: NodeId): boolean {
    const role = this.options.nodes().get(node)?.role
    return role === 'draining' || role === 'removed'
  }

  /** This start of it is about to stop: its next one may be given something again. Whether that is news. */
  stops(node: NodeId, boot: number): boolean {
    if (this.stopping.get(node) === boot) return false
    this.stopping.set(node, boot)
    return true
  }

  /** It is about to stop: open segments go to others. What it keeps of sealed ones it will have when it is back. */
  isStopping(node: NodeId): boolean {
    const boot = this.stopping.get(node)
    return boot !== undefined && (this.boot(node) ?? boot) <= boot
  }

  /** Whether that is news. */
  saysFull(node: NodeId, full: boolean, nowMs: number): boolean {
    if (!full) return this.full.delete(node)
    const news = !this.full.has(node)
    this.full.set(node, nowMs)
    return news
  }

  isFull(node: NodeId): boolean {
    return this.full.has(node)
  }

  boot(node: NodeId): number | undefined {
    return this.known.get(node)?.boot
  }

  /** How many are to stay in the cluster, however they are now. */
  members(): number {
    let members = 0
    for (const { role } of this.options.nodes().values()) if (role === 'member') members++
    return members
  }

  /** Those that may be given a segment, if they have room. */
  healthy(): readonly SeenBroker[] {
    return [...this.known.values()].filter(({ node, alive, role }) => {
      return alive && role === 'member' && !this.isStopping(node)
    })
  }
}

function isSame(a: Known, b: Known): boolean {
  return (
    a.alive === b.alive &&
    a.boot === b.boot &&
    a.role === b.role &&
    a.hostLabel === b.hostLabel &&
    a.rackLabel === b.rackLabel
  )
}

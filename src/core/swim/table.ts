// Who is known, in which state, and since when; and the view of them that others act on, with its version.

import type { NodeId } from '../../model/ids.ts'
import { MEMBERS_MAX, type Member, type Profile } from '../../model/swim.ts'
import { Flaps } from './flapping.ts'
import { isLive } from './order.ts'
import type { View, ViewMember } from './types.ts'

/** One other member. */
export interface Known {
  member: Member
  /** When it came into its state, on this member's clock. */
  since: number
  /** Those who found out by themselves, while it is suspect. */
  suspectedBy: readonly NodeId[]
  /** While it is suspect: when it was asked for a last word. */
  askedAt: number | undefined
  /** While it is dead: when it is probed again, and how long the wait was. */
  probeAt: number
  probeWaitMs: number
  readonly flaps: Flaps
  /** As the view has it now: a hold that ends changes the view. */
  held: boolean
}

export class Table {
  self: Member
  /** Changes of who is there. */
  version = 1
  /** When the view changed, or somebody who counts was last suspect. */
  settledAt: number
  private readonly byNode = new Map<NodeId, Known>()

  constructor(self: Member, now: number) {
    this.self = self
    this.settledAt = now
  }

  get(node: NodeId): Known | undefined {
    return this.byNode.get(node)
  }

  all(): Iterable<Known> {
    return this.byNode.values()
  }

  /** Undefined when there is no room for more. */
  add(member: Member, now: number): Known | undefined {
    if (this.byNode.size >= MEMBERS_MAX) return undefined
    const known: Known = {
      member,
      since: now,
      suspectedBy: [],
      askedAt: undefined,
      probeAt: 0,
      probeWaitMs: 0,
      flaps: new Flaps(),
      held: false,
    }
    this.byNode.set(member.node, known)
    return known
  }

  remove(node: NodeId): void {
    this.byNode.delete(node)
  }

  /** The others that are alive or suspect. */
  live(): Known[] {
    return [...this.byNode.values()].filter(({ member }) => isLive(member.state))
  }

  suspects(): Known[] {
    return [...this.byNode.values()].filter(({ member }) => member.state === 'suspect')
  }

  dead(): Known[] {
    return [...this.byNode.values()].filter(({ member }) => member.state === 'dead')
  }

  /** Alive or suspect, this member counted. */
  get liveCount(): number {
    let count = 1
    for (const { member } of this.byNode.values()) if (isLive(member.state)) count++
    return count
  }

  /** Nobody else is known who has not left: the dead may only be out of reach. */
  get isAlone(): boolean {
    for (const { member } of this.byNode.values()) if (member.state !== 'left') return false
    return true
  }

  changed(now: number): void {
    this.version++
    this.settledAt = now
  }

  view(joined: boolean): View {
    const live = this.live()
    const moving = live.some(({ member, held }) => member.state === 'suspect' && !held)
    const others = live.map(({ member, held }): ViewMember => ({ member, held }))
    const members = [{ member: this.self, held: false }, ...others]
    return {
      version: this.version,
      stableSince: joined && !moving ? this.settledAt : undefined,
      members: members.sort((a, b) => (a.member.node < b.member.node ? -1 : 1)),
    }
  }
}

/** Whether the two differ in what others build on, beside capacity and load, which change all the time. */
export function movesView(a: Profile, b: Profile): boolean {
  return (
    a.name !== b.name ||
    a.hostLabel !== b.hostLabel ||
    a.rackLabel !== b.rackLabel ||
    a.cluster.host !== b.cluster.host ||
    a.cluster.port !== b.cluster.port ||
    a.client.host !== b.client.host ||
    a.client.port !== b.client.port
  )
}

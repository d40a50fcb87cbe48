// One member, what it is told and what it does, and a clock that is moved by hand.

import type { Address } from '../../../src/base/address.ts'
import { Swim } from '../../../src/core/swim/swim.ts'
import {
  type Effects,
  SWIM_SETTINGS,
  type SwimEvent,
  type SwimSettings,
} from '../../../src/core/swim/types.ts'
import { clusterId, type NodeId, nodeId } from '../../../src/model/ids.ts'
import type {
  ClusterIdentity,
  Member,
  MemberState,
  NamedCluster,
  Packet,
  PacketBody,
  Profile,
  SyncAnswer,
  Update,
} from '../../../src/model/swim.ts'
import { SIZES } from './machine.ts'

const CLUSTER: ClusterIdentity = {
  id: clusterId('c'.repeat(32)),
  foundedMs: 5000,
  shards: 64,
}
export const NAMED: NamedCluster = { ...CLUSTER, lone: false }
export const OTHER_CLUSTER: NamedCluster = {
  id: clusterId('d'.repeat(32)),
  foundedMs: 4000,
  shards: 64,
  lone: true,
}

export function idOf(n: number): NodeId {
  return nodeId(n.toString(16).padStart(32, '0'))
}
export function at(n: number): Address {
  return { host: `h${n}`, port: 2922 }
}
export function profileOf(n: number, change: Partial<Profile> = {}): Profile {
  return {
    name: `m${n}`,
    cluster: at(n),
    client: { host: `h${n}`, port: 2921 },
    data: { host: `h${n}`, port: 2923 },
    hostLabel: `host-${n}`,
    rackLabel: '',
    capacityBytes: 1000,
    loadBytes: 0,
    ...change,
  }
}
export function memberOf(n: number, state: MemberState, change: Partial<Member> = {}): Member {
  return {
    node: idOf(n),
    boot: 1,
    nonce: n,
    incarnation: 0,
    state,
    profile: profileOf(n),
    ...change,
  }
}
export function news(member: Member, ...suspectedBy: readonly number[]): Update {
  return { member, suspectedBy: suspectedBy.map(idOf) }
}

/** Member 0, which has founded a cluster, and what it did. */
export class Bench {
  now = 1000
  readonly swim: Swim
  readonly events: SwimEvent[] = []
  sent: Effects['packets'][number][] = []
  asked: Address[] = []

  constructor(settings: Partial<SwimSettings> = {}, peers: readonly Address[] = []) {
    let step = 0
    this.swim = new Swim(
      {
        node: idOf(0),
        boot: 1,
        nonce: 0,
        cluster: undefined,
        peers,
        profile: profileOf(0),
        settings: { ...SWIM_SETTINGS, ...settings },
        sizes: SIZES,
        // Anything in [0, 1) does, as long as it moves.
        chance: () => (step++ * 0.37) % 1,
      },
      this.now,
    )
    this.swim.found(CLUSTER, this.now)
    this.take()
  }

  take(): void {
    const { packets, syncs, events } = this.swim.take()
    this.sent.push(...packets)
    this.asked.push(...syncs.map(({ to }) => to))
    this.events.push(...events)
  }

  /** Ticks as a driver does. */
  pass(ms: number): void {
    const end = this.now + ms
    while (this.swim.nextTick <= end) {
      this.now = Math.max(this.now, this.swim.nextTick)
      this.swim.tick(this.now)
      this.take()
    }
    this.now = end
  }

  hear(n: number, updates: readonly Update[], body: PacketBody = { kind: 'gossip' }): void {
    this.receive({ cluster: NAMED, from: idOf(n), boot: 1, nonce: n, body, updates, hints: [] })
  }
  receive(packet: Packet, from: Address = at(9)): void {
    this.swim.receive(packet, from, this.now)
    this.take()
  }

  /** What a sync with member n brings. */
  synced(n: number, updates: readonly Update[]): void {
    const answer: SyncAnswer = {
      kind: 'sync-answer',
      cluster: NAMED,
      from: idOf(n),
      boot: 1,
      nonce: n,
      updates,
      hints: [],
    }
    this.swim.syncAnswered(at(n), answer, this.now)
    this.take()
  }

  stateOf(n: number): MemberState | undefined {
    return this.swim.memberOf(idOf(n))?.state
  }
}

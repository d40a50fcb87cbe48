// All that this broker says and hears about segments on the cluster port: as a broker that holds replicas, and as a coordinator.
//
//                     ┌─ lease-answer ──────────────> Leases       what may this broker accept?
//   receive ──────────┼─ ask-end, fence, ... ───────> Errands ───> Replicas
//                     └─ lease-request, give-end, ... > Coordinator
//   all of them ──────> Post ──> peers, or this broker itself in a later turn

import type { NodeId } from '../../model/ids.ts'
import type { Forceable } from '../../model/segment-ends.ts'
import type { SegmentKey } from '../../model/segment-key.ts'
import { shardOfTopic } from '../../model/shards.ts'
import type { PeerMessage } from '../../wire/peer/types.ts'
import { Leases } from '../leases/leases.ts'
import type { Elsewhere, ReplicaHooks } from '../replica/types.ts'
import { Coordinator } from './coordinator.ts'
import { Errands } from './errands.ts'
import { Post } from './post.ts'
import type { ControlOptions, RangeTrouble } from './types.ts'

/** While it waits for others to take what this broker has. */
const DRAIN_POLL_MS = 100
/** When nobody has taken anything for so long nobody will: they may be stopping, too. */
const DRAIN_STALL_MS = 2000

export class Control {
  /** For this broker's replicas. */
  readonly hooks: Required<ReplicaHooks>
  private readonly options: ControlOptions
  private readonly post: Post
  private readonly leases: Leases
  private readonly errands: Errands
  private readonly coordinator: Coordinator
  private stopped = false

  constructor(options: ControlOptions) {
    const { ports, nodeId } = options
    this.options = options
    this.post = new Post({
      clock: ports.clock,
      nodeId,
      send: (to, messages) => options.send(to, messages),
      receive: (from, messages) => this.receive(from, messages),
    })
    const send: Post['send'] = (to, message) => this.post.send(to, message)
    this.leases = new Leases(options, send)
    this.errands = new Errands(options, send)
    this.coordinator = new Coordinator(options, send)
    this.hooks = { ...this.errands.hooks, waits: () => this.leases.waits() }
  }

  /** Whether the leader here of an open segment may accept anything now. */
  leased(key: SegmentKey): boolean {
    return this.leases.leased(key)
  }

  /** Of the topics that this broker coordinates. */
  troubles(): readonly RangeTrouble[] {
    return this.coordinator.troubles()
  }

  /** Only those that coordinate something are told. */
  diskFull(node: NodeId): boolean {
    return this.coordinator.diskFull(node)
  }

  forceEnd(key: SegmentKey, end: number | undefined): Forceable | Elsewhere {
    const { shards, nodeId } = this.options
    const known = this.coordinator.forceEnd(key, end)
    if (known !== undefined) return known
    const leader = shards.leaderOf(shardOfTopic(key.topicId, shards.count))
    return { coordinator: leader?.node === nodeId ? undefined : leader?.node }
  }

  /** Messages of shards are passed over. */
  receive(from: NodeId, messages: readonly PeerMessage[]): void {
    for (const message of messages) {
      if (this.stopped) return
      if (!('shard' in message)) this.one(from, message)
    }
  }

  private one(from: NodeId, message: Exclude<PeerMessage, { readonly shard: number }>): void {
    switch (message.kind) {
      case 'lease-answer':
        return this.leases.answered(message)
      case 'ask-end':
      case 'end-refused':
      case 'fence':
      case 'stage-order':
      case 'inspect':
        return this.errands.receive(from, message)
      case 'lease-request':
      case 'give-end':
      case 'fence-answer':
      case 'stage-report':
      case 'inspect-answer':
        return this.coordinator.receive(from, message)
    }
  }

  /** Has others hold the open segments that this broker holds, if they can; resolves when nothing is left, or nobody takes more. */
  async drain(withinMs: number): Promise<void> {
    const { clock } = this.options.ports
    const began = clock.monotonic()
    let left = this.countOpen()
    let movedMs = began
    this.leases.drain()
    while (!this.stopped && left > 0 && this.hasOthers()) {
      const now = clock.monotonic()
      if (now - began >= withinMs || now - movedMs >= DRAIN_STALL_MS) return
      await new Promise<void>((resolve) => {
        clock.after(DRAIN_POLL_MS, resolve)
      })
      const before = left
      left = this.countOpen()
      if (left < before) movedMs = clock.monotonic()
    }
  }

  /** Open segments that it has a replica of. */
  private countOpen(): number {
    const { metadata, nodeId } = this.options
    let count = 0
    for (const { active } of metadata.state.topics.values()) {
      for (const { segments } of active) if (segments.at(-1)?.replicas.includes(nodeId)) count++
    }
    return count
  }

  private hasOthers(): boolean {
    const { nodeId } = this.options
    return this.options.brokers().some(({ node, alive }) => node !== nodeId && alive)
  }

  stop(): void {
    this.stopped = true
    this.leases.stop()
    this.coordinator.stop()
    this.post.stop()
  }
}

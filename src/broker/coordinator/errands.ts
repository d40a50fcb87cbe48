// What coordinators ask of this broker's replicas, and what these have to say to coordinators.
//
//   ask-end, end-refused, fence, stage-order, inspect ──> Replicas ──> fence-answer, inspect-answer to whoever asked
//                                                            └───────> give-end, stage-report to whoever coordinates the topic now

import { EastGuardError } from '../../base/errors.ts'
import type { NodeId } from '../../model/ids.ts'
import { keyText, type SegmentKey } from '../../model/segment-key.ts'
import { shardOfTopic } from '../../model/shards.ts'
import { DiskError } from '../../ports/disk.ts'
import type { Log } from '../../ports/log.ts'
import type { SegmentMessage } from '../../wire/peer/segments.ts'
import type { ReplicaHooks, Replicas } from '../replica/types.ts'
import type { ControlOptions } from './types.ts'

/** Said to a broker's replicas. */
export type Errand = Extract<
  SegmentMessage,
  { readonly kind: 'ask-end' | 'end-refused' | 'fence' | 'stage-order' | 'inspect' }
>

export class Errands {
  readonly hooks: Required<Pick<ReplicaHooks, 'gave' | 'staged'>>
  private readonly replicas: Replicas
  private readonly boot: number
  private readonly log: Log
  private readonly send: (to: NodeId, message: SegmentMessage) => void
  /** Fences and inspections under way: whoever asks again meanwhile is answered once. */
  private readonly underWay = new Set<string>()

  constructor(options: ControlOptions, send: (to: NodeId, message: SegmentMessage) => void) {
    const { shards, boot } = options
    this.replicas = options.replicas
    this.boot = boot
    this.log = options.ports.log
    this.send = send
    const tell = (key: SegmentKey, message: SegmentMessage): void => {
      const leader = shards.leaderOf(shardOfTopic(key.topicId, shards.count))
      // Nobody is known to coordinate it: it is told again.
      if (leader !== undefined) send(leader.node, message)
    }
    this.hooks = {
      gave: (key, given) => tell(key, { kind: 'give-end', key, boot, given }),
      staged: (key, token, report) => tell(key, { kind: 'stage-report', key, token, report }),
    }
  }

  receive(from: NodeId, message: Errand): void {
    const { replicas, boot } = this
    const { key } = message
    switch (message.kind) {
      case 'ask-end':
        return replicas.giveEndAsked(key, message.attempt, message.why)
      case 'end-refused':
        return replicas.endRefused(key, message.code, message.text)
      case 'stage-order':
        return replicas.stage(message)
      case 'fence':
        return this.answer(from, message, async () => {
          const answer = await replicas.fence(key)
          return { kind: 'fence-answer', key, answer }
        })
      case 'inspect':
        return this.answer(from, message, async () => {
          const answer = await replicas.inspect(key)
          return { kind: 'inspect-answer', key, boot, answer }
        })
    }
  }

  private answer(from: NodeId, asked: Errand, find: () => Promise<SegmentMessage>): void {
    const name = `${asked.kind} ${keyText(asked.key)} ${from}`
    if (this.underWay.has(name)) return
    this.underWay.add(name)
    find().then(
      (answer) => {
        this.underWay.delete(name)
        this.send(from, answer)
      },
      (error: unknown) => {
        this.underWay.delete(name)
        // A disk that failed stops the broker, which others find out by themselves.
        if (!(error instanceof EastGuardError || error instanceof DiskError)) throw error
        const { topicId, range, segment } = asked.key
        const fields = { topicId, range, segment, node: from, why: error.message }
        this.log.debug(`a coordinator's ${asked.kind} is not answered`, fields)
      },
    )
  }
}

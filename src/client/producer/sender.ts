// Brings batches to their leaders. A lane is one partition's queue and what sending from it needs; lanes that may have
// something to send are listed, and once per turn everything sendable leaves: one PRODUCE frame per broker with a batch of
// each ready partition, then another while partitions have more. So a busy turn costs few frames, and a quiet one no wait.

import { Backoff } from '../../base/backoff.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Acks } from '../../model/policy.ts'
import type { Address } from '../../ports/streams.ts'
import { allocateProducerId } from '../../wire/native/allocate-producer-id.ts'
import { readResponseBody } from '../../wire/native/header.ts'
import { VERSION_MAX } from '../../wire/native/operations.ts'
import { ACKS_ALL, produceFrame, readProduced } from '../../wire/native/produce.ts'
import { addressIn, type Cluster, type TopicRoute } from '../cluster.ts'
import type { BrokerConnection } from '../connection.ts'
import { deadlineIn } from '../timing.ts'
import type { ProducerBatch, ProducerIdentity } from './batch.ts'
import type { PartitionQueue } from './partition-queue.ts'

/** A topic as the producer writes it. */
export interface ProducerTopic {
  route: TopicRoute
  readonly acks: Acks
  /** Being looked up again. */
  /** While its route is looked up. */
  refreshing: Promise<void> | undefined
  /** Deleted, or deleted and made anew: nothing goes there any more. */
  gone: boolean
}

export interface Lane {
  readonly queue: PartitionQueue
  readonly topic: ProducerTopic
  readonly backoff: Backoff
  listed: boolean
  /** In the producer's list of lanes whose open batch lingers. */
  lingering: boolean
  /** How large the last batch was. */
  sizeHint: number
  /** A producer id has been asked for. */
  identifying: boolean
  identifiedBefore: boolean
  /** Where a NOT_LEADER answer sent us; holds as long as the route that was wrong. */
  redirect: { readonly to: Address; readonly insteadOf: TopicRoute } | undefined
}

export interface SenderHooks {
  /** The open batch of a lane may go though it is not full: put it in line. */
  seal(lane: Lane): void
  /** The topic no longer exists: fail everything that is on its way there. */
  topicGone(topic: ProducerTopic, error: EastGuardError): void
}

/** Frames are closed at this size; a larger batch goes alone. */
const FRAME_BYTES_TARGET: number = 4 * 1024 * 1024
const FRAME_BATCHES_MAX = 1000

interface Draft {
  readonly connection: BrokerConnection
  readonly acks: Acks
  readonly lanes: Lane[]
  readonly batches: ProducerBatch[]
  bytes: number
}

export class Sender {
  private readonly cluster: Cluster
  private readonly hooks: SenderHooks
  private listed: Lane[] = []
  private scheduled = false
  private identity: Promise<ProducerIdentity> | undefined

  constructor(cluster: Cluster, hooks: SenderHooks) {
    this.cluster = cluster
    this.hooks = hooks
  }

  /** The lane may have something to send. */
  ready(lane: Lane): void {
    if (!lane.listed) {
      lane.listed = true
      this.listed.push(lane)
    }
    if (this.scheduled) return
    this.scheduled = true
    queueMicrotask(() => this.drain())
  }

  private drain(): void {
    this.scheduled = false
    let lanes = this.listed
    this.listed = []
    for (const lane of lanes) lane.listed = false
    while (lanes.length > 0) {
      const more: Lane[] = []
      const drafts: Draft[] = []
      for (const lane of lanes) {
        const batch = this.takeFrom(lane)
        if (batch === undefined) continue
        this.add(drafts, lane, batch)
        more.push(lane)
      }
      for (const draft of drafts) this.send(draft)
      lanes = more
    }
  }

  private takeFrom(lane: Lane): ProducerBatch | undefined {
    const { queue } = lane
    if (queue.open?.due === true && queue.hasRoom) this.hooks.seal(lane)
    if (queue.needsIdentity) this.identify(lane)
    return queue.take()
  }

  private add(drafts: Draft[], lane: Lane, batch: ProducerBatch): void {
    const { acks, route } = lane.topic
    const redirect = lane.redirect?.insteadOf === route ? lane.redirect.to : undefined
    const connection = this.cluster.at(redirect ?? route.leaders[lane.queue.partition])
    const size = lane.queue.bytesOf(batch).length
    let draft = drafts.find(
      (d) =>
        d.connection === connection &&
        d.acks === acks &&
        d.bytes + size <= FRAME_BYTES_TARGET &&
        d.batches.length < FRAME_BATCHES_MAX,
    )
    if (draft === undefined) {
      draft = { connection, acks, lanes: [], batches: [], bytes: 0 }
      drafts.push(draft)
    }
    draft.lanes.push(lane)
    draft.batches.push(batch)
    draft.bytes += size
  }

  private send(draft: Draft): void {
    const { requestTimeoutMs } = this.cluster.settings
    const { batches, lanes } = draft
    const slots = batches.map((batch, i) => {
      const { queue, topic } = lanes[i] as Lane
      return {
        topicId: topic.route.view.topicId,
        partition: queue.partition,
        // A batch without keys holds no record that a key span could select, but says so as "any".
        leastKeyHash: batch.leastKeyHash <= batch.greatestKeyHash ? batch.leastKeyHash : 0,
        greatestKeyHash:
          batch.leastKeyHash <= batch.greatestKeyHash ? batch.greatestKeyHash : 0xffff_ffff,
        batch: queue.bytesOf(batch),
      }
    })
    const acks = draft.acks === 'all' ? ACKS_ALL : Number(draft.acks)
    const frame = produceFrame(VERSION_MAX, 0, acks, requestTimeoutMs, slots)
    const reply = {
      answered: (payload: Uint8Array) => this.answered(draft, payload),
      failed: (error: EastGuardError, maybeArrived: boolean) =>
        this.failed(draft, error, maybeArrived),
    }
    if (draft.acks === '0') {
      draft.connection.call(frame, requestTimeoutMs, reply, () => this.written(draft))
    } else draft.connection.call(frame, requestTimeoutMs, reply)
  }

  private written(draft: Draft): void {
    for (const [i, batch] of draft.batches.entries()) {
      const lane = draft.lanes[i] as Lane
      lane.backoff.reset()
      lane.queue.stored(batch, -1)
      this.ready(lane)
    }
  }

  private answered(draft: Draft, payload: Uint8Array): void {
    let results: ReturnType<typeof readProduced>
    try {
      results = readResponseBody(payload, (r) => {
        r.raw(r.left)
        return readProduced(payload)
      })
      if (results.length !== draft.batches.length) {
        const message = `${draft.batches.length} batches were sent and ${results.length} answered`
        throw new EastGuardError('DECODE_FAILED', message)
      }
    } catch (cause) {
      const error =
        cause instanceof EastGuardError
          ? cause
          : new EastGuardError('DECODE_FAILED', 'a produce response is malformed', { cause })
      for (const [i, batch] of draft.batches.entries())
        this.refused(draft.lanes[i] as Lane, batch, error)
      return
    }
    for (const [i, result] of results.entries()) {
      const lane = draft.lanes[i] as Lane
      const batch = draft.batches[i] as ProducerBatch
      if (result.error === undefined) {
        lane.backoff.reset()
        lane.queue.stored(batch, result.baseOffset)
        this.ready(lane)
      } else this.refused(lane, batch, new EastGuardError(result.error, result.message))
    }
  }

  private refused(lane: Lane, batch: ProducerBatch, error: EastGuardError): void {
    if (lane.topic.gone) return
    if (error.code === 'UNKNOWN_TOPIC') {
      this.hooks.topicGone(lane.topic, error)
      return
    }
    if (error.code === 'NOT_LEADER') {
      const to = addressIn(error)
      lane.redirect = to === undefined ? undefined : { to, insteadOf: lane.topic.route }
    }
    if (error.code !== 'STORAGE_FULL') void this.refresh(lane.topic)
    if (lane.queue.refused(batch, error)) this.rest(lane)
    else this.ready(lane)
  }

  private failed(draft: Draft, error: EastGuardError, maybeArrived: boolean): void {
    for (const [i, batch] of draft.batches.entries()) {
      const lane = draft.lanes[i] as Lane
      if (lane.topic.gone) continue
      lane.redirect = undefined
      void this.refresh(lane.topic)
      if (lane.queue.lost(batch, error, maybeArrived)) this.rest(lane)
      else this.ready(lane)
    }
  }

  /** A pause before the next attempt; several failures of one window make one pause. */
  private rest(lane: Lane): void {
    const { queue } = lane
    if (queue.resting) return
    queue.resting = true
    this.cluster.ports.clock.after(lane.backoff.next(), () => {
      queue.resting = false
      this.ready(lane)
    })
  }

  /** Looks the topic up again: its leaders may have changed, or it may be gone. Resolves when that is known, or late. */
  refresh(topic: ProducerTopic): Promise<void> {
    if (topic.gone) return Promise.resolve()
    topic.refreshing ??= this.lookUp(topic).finally(() => {
      topic.refreshing = undefined
    })
    return topic.refreshing
  }

  private lookUp(topic: ProducerTopic): Promise<void> {
    const { view } = topic.route
    const deadline = deadlineIn(this.cluster.ports.clock, this.cluster.settings.requestTimeoutMs)
    this.cluster.forgetRoute(topic.route)
    return this.cluster
      .route(view.name, deadline, topic.route)
      .then((route) => {
        if (route.view.topicId === view.topicId) topic.route = route
        else {
          const message = `the topic '${view.name}' was deleted and made anew`
          this.hooks.topicGone(topic, new EastGuardError('UNKNOWN_TOPIC', message))
        }
      })
      .catch((error: unknown) => {
        // Anything else shows itself to the batches, which have deadlines of their own.
        if (error instanceof EastGuardError && error.code === 'UNKNOWN_TOPIC') {
          this.hooks.topicGone(topic, error)
        }
      })
  }

  private identify(lane: Lane): void {
    if (lane.identifying) return
    lane.identifying = true
    // All lanes begin under one producer id; one whose epochs are used up gets another.
    if (this.identity === undefined || lane.identifiedBefore) {
      const deadline = deadlineIn(this.cluster.ports.clock, this.cluster.settings.requestTimeoutMs)
      this.identity = this.cluster.call('getting a producer id', allocateProducerId, {}, deadline)
    }
    const asked = this.identity
    asked.then(
      (identity) => {
        lane.identifying = false
        lane.identifiedBefore = true
        if (lane.queue.needsIdentity) lane.queue.identify(identity)
        this.ready(lane)
      },
      (error: unknown) => {
        lane.identifying = false
        if (this.identity === asked) this.identity = undefined
        if (error instanceof EastGuardError && error.retriable) this.rest(lane)
        else {
          const message = 'no producer id could be had'
          lane.queue.failAll(new EastGuardError('INTERNAL', message, { cause: error }))
        }
      },
    )
  }
}

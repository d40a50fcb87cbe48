// Brings batches to their leaders. A lane is one partition's queue and what sending from it needs; lanes that may have
// something to send are listed, and once per turn everything sendable leaves: one PRODUCE frame per broker with a batch of
// each ready partition, then another while partitions have more. So a busy turn costs few frames, and a quiet one no wait.

import { Backoff } from '../../base/backoff.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Acks } from '../../model/policy.ts'
import { redirectError } from '../../model/redirect.ts'
import type { Timer } from '../../ports/clock.ts'
import { allocateProducerId } from '../../wire/native/allocate-producer-id.ts'
import { VERSION_MAX } from '../../wire/native/operations.ts'
import {
  ACKS_ALL,
  type ProduceResult,
  produceFrame,
  readProduced,
} from '../../wire/native/produce.ts'
import type { Cluster } from '../cluster.ts'
import type { BrokerConnection } from '../connection.ts'
import type { Patience } from '../patience.ts'
import { routeTo, type TopicRoute } from '../route.ts'
import { deadlineIn } from '../timing.ts'
import type { ProducerBatch, ProducerIdentity } from './batch.ts'
import { type Flight, Flights, type Part } from './flights.ts'
import type { PartitionQueue } from './partition-queue.ts'
import { follow, hasMoved, type Redirected, type Target, targetOf } from './target.ts'

/** A topic as the producer writes it. */
export interface ProducerTopic {
  route: TopicRoute
  readonly acks: Acks
  /** While its route is looked up. */
  refreshing: Promise<void> | undefined
  /** Deleted, or deleted and made anew: nothing goes there any more. */
  gone: boolean
  readonly patience: Patience
  /** Lanes that pause before their next attempt, and where they would have gone. */
  readonly resting: Map<Lane, { readonly target: Target; readonly timer: Timer }>
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
  redirect: Redirected | undefined
  /** Redirects followed since the last batch that was stored. */
  hops: number
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
/** How often a lane that rests looks who leads. */
const LOOK_MS = 250

interface Draft extends Flight {
  readonly connection: BrokerConnection
  readonly acks: Acks
  readonly parts: Part[]
  bytes: number
}

export class Sender {
  private readonly cluster: Cluster
  private readonly hooks: SenderHooks
  private listed: Lane[] = []
  private scheduled = false
  private identity: Promise<ProducerIdentity> | undefined
  /** Why none could be had until now. */
  private identityTrouble: EastGuardError | undefined
  private readonly flights: Flights

  constructor(cluster: Cluster, hooks: SenderHooks) {
    this.cluster = cluster
    this.hooks = hooks
    this.flights = new Flights(cluster.ports.clock, {
      refresh: (topic) => void this.refresh(topic),
      again: ({ lane, batch }, maybeArrived) => {
        const error = new EastGuardError('CONNECTION_LOST', 'another broker leads here by now')
        lane.queue.lost(batch, error, maybeArrived)
        this.ready(lane)
      },
    })
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
    const { acks } = lane.topic
    const { address, segment } = targetOf(lane)
    const connection = this.cluster.at(address)
    const size = lane.queue.bytesOf(batch).length
    let draft = drafts.find(
      (d) =>
        d.connection === connection &&
        d.acks === acks &&
        d.bytes + size <= FRAME_BYTES_TARGET &&
        d.parts.length < FRAME_BATCHES_MAX,
    )
    if (draft === undefined) {
      draft = { connection, acks, parts: [], bytes: 0, requestId: 0, sentAtMs: 0 }
      drafts.push(draft)
    }
    draft.parts.push({ lane, batch, segment, moved: false })
    draft.bytes += size
  }

  private send(draft: Draft): void {
    const { ports, settings } = this.cluster
    const { requestTimeoutMs } = settings
    const slots = draft.parts.map(({ lane: { queue, topic }, batch }) => ({
      topicId: topic.route.view.topicId,
      partition: queue.partition,
      // A batch without keys holds no record that a key span could select, but says so as "any".
      leastKeyHash: batch.leastKeyHash <= batch.greatestKeyHash ? batch.leastKeyHash : 0,
      greatestKeyHash:
        batch.leastKeyHash <= batch.greatestKeyHash ? batch.greatestKeyHash : 0xffff_ffff,
      batch: queue.bytesOf(batch),
    }))
    const acks = draft.acks === 'all' ? ACKS_ALL : Number(draft.acks)
    const frame = produceFrame(VERSION_MAX, 0, acks, requestTimeoutMs, slots)
    const reply = {
      answered: (payload: Uint8Array) => this.answered(draft, payload),
      failed: (error: EastGuardError, maybeArrived: boolean) =>
        this.failed(draft, error, maybeArrived),
    }
    draft.sentAtMs = ports.clock.monotonic()
    // Before the call, which may fail at once.
    this.flights.add(draft)
    const onWritten = draft.acks === '0' ? () => this.written(draft) : undefined
    draft.requestId = draft.connection.call(frame, requestTimeoutMs, reply, onWritten)
  }

  private written(draft: Draft): void {
    this.flights.end(draft)
    for (const part of draft.parts) this.stored(part, -1)
  }

  private answered(draft: Draft, payload: Uint8Array): void {
    this.flights.end(draft)
    let results: ReturnType<typeof readProduced>
    try {
      results = readProduced(payload)
      if (results.length !== draft.parts.length) {
        const message = `${draft.parts.length} batches were sent and ${results.length} answered`
        throw new EastGuardError('DECODE_FAILED', message)
      }
    } catch (cause) {
      const error =
        cause instanceof EastGuardError
          ? cause
          : new EastGuardError('DECODE_FAILED', 'a produce response is malformed', { cause })
      for (const part of draft.parts) this.refused(draft, part, error)
      return
    }
    for (const [i, result] of results.entries()) {
      const part = draft.parts[i] as Part
      if (result.error === undefined) this.stored(part, result.baseOffset)
      else this.refused(draft, part, errorOf(result))
    }
  }

  private stored({ lane, batch, moved }: Part, baseOffset: number): void {
    if (moved) return
    lane.backoff.reset()
    lane.topic.patience.well(lane.queue.partition)
    lane.hops = 0
    lane.queue.stored(batch, baseOffset)
    this.ready(lane)
  }

  private refused(
    { connection }: Draft,
    { lane, batch, moved }: Part,
    error: EastGuardError,
  ): void {
    if (moved || lane.topic.gone) return
    const notLeader = error.code === 'NOT_LEADER'
    const atOnce = notLeader && follow(lane, error, connection.address)
    if (notLeader) this.cluster.denyRoute(lane.topic.route)
    if (error.code !== 'STORAGE_FULL') void this.refresh(lane.topic)
    if (lane.queue.refused(batch, unlessBehind(error)) && !atOnce) this.rest(lane, error)
    else this.ready(lane)
  }

  private failed(draft: Draft, error: EastGuardError, maybeArrived: boolean): void {
    this.flights.end(draft)
    for (const { lane, batch, moved } of draft.parts) {
      if (moved || lane.topic.gone) continue
      lane.redirect = undefined
      void this.refresh(lane.topic)
      if (lane.queue.lost(batch, error, maybeArrived)) this.rest(lane, error)
      else this.ready(lane)
    }
  }

  /** A pause before the next attempt; several failures of one window make one pause. */
  private rest(lane: Lane, error: EastGuardError): void {
    const { queue } = lane
    lane.topic.patience.failed(queue.partition, error)
    if (queue.resting) return
    queue.resting = true
    const { address, segment } = targetOf(lane)
    // A redirect may not say which segment it is about.
    const known = Math.max(segment, routeTo(lane.topic.route, queue.partition).segment)
    // A full disk is no reason to look: who no longer leads for it says so itself.
    const looks = error.code !== 'STORAGE_FULL'
    this.restFor(lane, { address, segment: known }, lane.backoff.next(), looks)
  }

  /** Less when another broker leads before; nobody tells that it does, so that is looked up now and then. */
  private restFor(lane: Lane, target: Target, ms: number, looks: boolean): void {
    const { topic } = lane
    const timer = this.cluster.ports.clock.after(Math.min(ms, LOOK_MS), () => {
      if (looks) void this.refresh(topic)
      if (ms <= LOOK_MS) this.awake(lane)
      else this.restFor(lane, target, ms - LOOK_MS, looks)
    })
    topic.resting.set(lane, { target, timer })
  }

  private awake(lane: Lane): void {
    lane.topic.resting.get(lane)?.timer.cancel()
    lane.topic.resting.delete(lane)
    lane.queue.resting = false
    this.ready(lane)
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
        if (route.view.topicId === view.topicId) this.rerouted(topic, route)
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

  private rerouted(topic: ProducerTopic, route: TopicRoute): void {
    topic.route = route
    this.flights.reroute(topic)
    for (const [lane, { target }] of topic.resting) {
      if (hasMoved(targetOf(lane), target)) this.awake(lane)
    }
  }

  /** Why it has no producer id yet, where it needs one. */
  troubleOf(lane: Lane): EastGuardError | undefined {
    return lane.identifying ? this.identityTrouble : undefined
  }

  private identify(lane: Lane): void {
    if (lane.identifying) return
    lane.identifying = true
    // All lanes begin under one producer id; one whose epochs are used up gets another.
    if (this.identity === undefined || lane.identifiedBefore) {
      const deadline = deadlineIn(this.cluster.ports.clock, this.cluster.settings.requestTimeoutMs)
      const what = 'getting a producer id'
      const note = (error: EastGuardError): void => {
        this.identityTrouble = error
      }
      this.identityTrouble = undefined
      this.identity = this.cluster.call(what, allocateProducerId, {}, deadline, undefined, note)
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
        if (error instanceof EastGuardError && error.retriable) this.rest(lane, error)
        else {
          const message = 'no producer id could be had'
          lane.queue.failAll(new EastGuardError('INTERNAL', message, { cause: error }))
        }
      },
    )
  }
}

function errorOf({ error, message, redirect }: ProduceResult): EastGuardError {
  const code = error ?? 'INTERNAL'
  return code === 'NOT_LEADER' && redirect !== undefined
    ? redirectError(code, message, redirect)
    : new EastGuardError(code, message)
}

/** A broker that is behind does not know a new topic or partition yet: whether it is really gone, looking it up tells. */
function unlessBehind(error: EastGuardError): EastGuardError {
  const { code, message } = error
  if (code !== 'UNKNOWN_TOPIC' && code !== 'UNKNOWN_PARTITION') return error
  return new EastGuardError(code, message, { retriable: true })
}

// A client that makes topics, changes them, deletes them and looks at them, one request after another, at any broker of its
// realm, and writes down what it asked and what it was told. Names are few and shared, so clients get in each other's way.
//
// It speaks through the SDK's connections and does its retrying itself: each attempt is one request with one outcome, as the
// checker of histories wants them. An attempt without an answer may take effect at any time, or never.

import { toHex } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import { type Prng, prng } from '../../base/prng.ts'
import { Cluster } from '../../client/cluster.ts'
import type { ClientPorts } from '../../client/ports.ts'
import { pause } from '../../client/timing.ts'
import type { TopicPolicy } from '../../model/policy.ts'
import type { Address } from '../../ports/streams.ts'
import { alterTopic } from '../../wire/native/alter-topic.ts'
import { createTopic } from '../../wire/native/create-topic.ts'
import { deleteTopic } from '../../wire/native/delete-topic.ts'
import { describeTopics } from '../../wire/native/describe-topics.ts'
import type { Message } from '../../wire/native/message.ts'
import type { Attempt, Facts, Operation, Outcome } from '../linear/types.ts'
import type { Watcher } from '../machine.ts'
import { CLIENT_PORT } from './machines.ts'
import { brokerHost } from './step.ts'

const NAMES = 6
const TOKEN_BYTES = 16
/** So many attempts in all, spread over the time there is: a run has enough of them even when many take long. */
const ATTEMPTS_WANTED = 72
const TIMEOUTS_MS = [200, 500, 2000] as const
/** Of a creation. */
const ATTEMPTS_MAX = 3
const SEGMENT_ENTRIES = [10, 20] as const
const RETENTION_MS_LEAST = 3_600_000
/** So many that hardly two operations have the same: which of them is seen can be told. */
const RETENTIONS = 1_000_000_000

/** What these answers say is certain: nothing was done, and nothing will be. */
const REFUSALS: ReadonlySet<string> = new Set([
  'CONNECTION_FAILED',
  'TOO_MANY_REQUESTS',
  'NOT_READY',
  'NOT_LEADER',
  'METADATA_CONFLICT',
  'METADATA_UNAVAILABLE',
  'INVALID_POLICY',
  'NOT_ENOUGH_BROKERS',
  'STORAGE_FULL',
  'CLUSTER_MISMATCH',
])

/** Brokers that share their metadata, by number. */
interface Realm {
  readonly name: string
  readonly brokers: readonly number[]
  /** Grows when nothing holds any longer of what was said before. */
  readonly life: number
}

export interface MetadataClientOptions {
  readonly host: string
  readonly realm: Realm
  /** Where a broker is; absent: on its simulated machine. */
  readonly addressOf?: (broker: number) => Address
  readonly ports: ClientPorts
  readonly seed: number
  /** By a clock that all clients share. */
  readonly nowMs: () => number
  /** Between two attempts, at most; absent: so that there are ATTEMPTS_WANTED of them. */
  readonly thinkMsMax?: number
  readonly watcher: Pick<Watcher, 'say'>
}

interface Request<Q, S> {
  readonly message: Message<Q, S>
  readonly request: Q
  readonly outcomeOf: (answer: S) => Outcome
}

export class MetadataClient {
  readonly attempts: Attempt[] = []
  /** Attempts that were answered with what was asked for. */
  done = 0
  private readonly options: MetadataClientOptions
  private readonly chance: Prng
  private cluster: Cluster
  /** Of the realm, when the connections were made. */
  private life: number
  private stopped = false

  constructor(options: MetadataClientOptions) {
    this.options = options
    this.chance = prng(options.seed)
    this.life = options.realm.life
    this.cluster = this.connect()
  }

  /** One after another, until then or until it is told to stop; resolves when the last has ended. */
  async work(untilMs: number): Promise<void> {
    const { nowMs } = this.options
    while (!this.stopped && nowMs() < untilMs) {
      await this.pause(this.chance.float() * this.thinkMsMax(untilMs))
      this.renew()
      const name = `${this.options.realm.name}-${this.life}-${this.chance.below(NAMES)}`
      const timeoutMs = this.pick(TIMEOUTS_MS)
      const kind = this.chance.below(100)
      if (kind < 25) await this.create(name, timeoutMs)
      else if (kind < 45) await this.attempt(name, this.alteration(), timeoutMs)
      else if (kind < 60) await this.attempt(name, { kind: 'delete' }, timeoutMs)
      else await this.attempt(name, { kind: 'describe' }, timeoutMs)
    }
  }

  private thinkMsMax(untilMs: number): number {
    const { nowMs, thinkMsMax } = this.options
    const left = Math.max(1, ATTEMPTS_WANTED - this.attempts.length)
    return thinkMsMax ?? (2 * (untilMs - nowMs())) / left
  }

  stop(): void {
    this.stopped = true
  }

  /** Ends its connections: it is not to be asked for anything any more. */
  close(): void {
    this.cluster.close()
  }

  /** Everything that can be asked for, at one broker or any, until it answers. Resolves with what was never answered. */
  async prove(broker: number | undefined, untilMs: number): Promise<string | undefined> {
    this.renew()
    const name = `${this.options.realm.name}-${this.life}-${this.options.host}-${broker ?? 'any'}`
    const todo: readonly Operation[] = [
      { kind: 'create', policy: this.policy(), token: this.token(), ifNotExists: false },
      { kind: 'describe' },
      this.alteration(),
      { kind: 'delete' },
    ]
    for (const operation of todo) {
      for (;;) {
        const { kind } = await this.attempt(name, operation, 2000, broker)
        // An attempt whose answer was lost may have deleted it.
        if (kind !== 'refused' && kind !== 'unknown') break
        if (this.options.nowMs() > untilMs) {
          return `${operation.kind} at ${broker === undefined ? 'any broker' : brokerHost(broker)}`
        }
        await this.pause(100)
      }
    }
    return undefined
  }

  private async create(name: string, timeoutMs: number): Promise<void> {
    const ifNotExists = this.chance.below(3) === 0
    const operation = {
      kind: 'create',
      policy: this.policy(),
      token: this.token(),
      ifNotExists,
    } as const
    for (let left = 1 + this.chance.below(ATTEMPTS_MAX); left > 0; left--) {
      const { kind } = await this.attempt(name, operation, timeoutMs)
      if (kind !== 'unknown' && kind !== 'refused') return
      await this.pause(10 + this.chance.below(50))
    }
  }

  private async attempt(
    name: string,
    operation: Operation,
    timeoutMs: number,
    at?: number,
  ): Promise<Outcome> {
    const { host, realm, nowMs, watcher } = this.options
    const broker = at ?? this.pick(realm.brokers)
    const callMs = nowMs()
    const life = this.life
    const outcome = await this.ask(broker, name, operation, timeoutMs)
    // What a broker says that has lost its disk is about another world.
    const known = realm.life === life ? outcome : UNKNOWN
    const returnMs = known.kind === 'unknown' ? undefined : nowMs()
    this.attempts.push({ process: host, name, callMs, returnMs, operation, outcome: known })
    if (known.kind !== 'unknown' && known.kind !== 'refused') this.done++
    watcher.say(`${host}: ${operation.kind} ${name} at ${brokerHost(broker)}: ${known.kind}`)
    return known
  }

  private ask(
    broker: number,
    name: string,
    operation: Operation,
    timeoutMs: number,
  ): Promise<Outcome> {
    switch (operation.kind) {
      case 'create': {
        const { token, ifNotExists, policy } = operation
        return this.send(broker, operation, timeoutMs, {
          message: createTopic,
          request: { name, token, ifNotExists, policy: policyOf(policy) },
          outcomeOf: (answer) => ({
            kind: answer.created ? 'created' : 'existing',
            topicId: answer.topicId,
            policy: factsOf(answer.policy),
          }),
        })
      }
      case 'alter':
        return this.send(broker, operation, timeoutMs, {
          message: alterTopic,
          request: { name, changes: policyOf(operation.changes) },
          outcomeOf: ({ policy }) => ({ kind: 'altered', policy: factsOf(policy) }),
        })
      case 'delete':
        return this.send(broker, operation, timeoutMs, {
          message: deleteTopic,
          request: { name },
          outcomeOf: () => ({ kind: 'deleted' }),
        })
      case 'describe':
        return this.send(broker, operation, timeoutMs, {
          message: describeTopics,
          request: { names: [name], brief: false },
          outcomeOf: ({ topics }) => {
            const first = topics[0]
            if (first === undefined) throw new EastGuardError('DECODE_FAILED', 'no topic is told')
            if ('error' in first) throw new EastGuardError(first.error, first.message)
            const { topicId, policy } = first.topic
            return { kind: 'described', topicId, policy: factsOf(policy) }
          },
        })
    }
  }

  private async send<Q, S>(
    broker: number,
    operation: Operation,
    timeoutMs: number,
    { message, request, outcomeOf }: Request<Q, S>,
  ): Promise<Outcome> {
    try {
      const connection = this.cluster.at(this.addressOf(broker))
      return outcomeOf(await connection.request(message, request, timeoutMs))
    } catch (error) {
      if (!(error instanceof EastGuardError)) throw error
      return failureOf(operation, error)
    }
  }

  private policy(): Facts {
    return {
      segmentEntries: this.pick(SEGMENT_ENTRIES),
      retentionMs: RETENTION_MS_LEAST + this.chance.below(RETENTIONS),
    }
  }

  private alteration(): Operation {
    const { segmentEntries = 10, retentionMs = 0 } = this.policy()
    const both = this.chance.below(2) === 0
    return { kind: 'alter', changes: both ? { segmentEntries, retentionMs } : { retentionMs } }
  }

  private token(): string {
    return toHex(this.chance.bytes(TOKEN_BYTES))
  }

  private pick<T>(from: readonly T[]): T {
    return from[this.chance.below(from.length)] as T
  }

  private pause(ms: number): Promise<void> {
    return pause(this.options.ports.clock, ms)
  }

  /** Brokers that lost everything are another cluster, which the old connections refuse. */
  private renew(): void {
    const { life } = this.options.realm
    if (life === this.life) return
    this.life = life
    this.cluster.close()
    this.cluster = this.connect()
  }

  private addressOf(broker: number): Address {
    const { addressOf } = this.options
    return addressOf?.(broker) ?? { host: brokerHost(broker), port: CLIENT_PORT }
  }

  private connect(): Cluster {
    const { host, realm, ports } = this.options
    return new Cluster(ports, {
      seeds: realm.brokers.map((broker) => this.addressOf(broker)),
      clientName: host,
      connectTimeoutMs: 300,
      requestTimeoutMs: 2000,
      backoffMs: 5,
      backoffMaxMs: 100,
    })
  }
}

const UNKNOWN: Outcome = { kind: 'unknown' }

function failureOf(operation: Operation, { code }: EastGuardError): Outcome {
  if (code === 'UNKNOWN_TOPIC' && operation.kind !== 'create') return { kind: 'absent' }
  if (code === 'TOPIC_EXISTS') return { kind: 'taken' }
  return { kind: REFUSALS.has(code) ? 'refused' : 'unknown' }
}

function policyOf({ segmentEntries, retentionMs }: Facts): Partial<TopicPolicy> {
  return {
    ...(typeof segmentEntries === 'number' && { segmentEntries }),
    ...(typeof retentionMs === 'number' && { retentionMs }),
  }
}

function factsOf({ segmentEntries, retentionMs }: TopicPolicy): Facts {
  return { segmentEntries, retentionMs }
}

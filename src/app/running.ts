// What a composition root hands back once a broker is ready: where it is, and how to end it.

import type { Address } from '../ports/streams.ts'

export interface RunningBroker {
  /** The native door, with the port that was chosen when 0 was asked for. */
  readonly client: Address
  /** Health, readiness and metrics; undefined when that door is off. */
  readonly http: Address | undefined
  readonly nodeId: string
  readonly clusterId: string
  /** Stops taking requests, answers those in flight within the drain time, flushes and closes. */
  stop(): Promise<void>
}

export interface BrokerHooks {
  /** The disk failed: nothing more is acknowledged. The process should end with EXIT_DISK. Called at most once. */
  onFatal(error: Error): void
}

/** `eastguard/testing` and other embedders: everything is optional. */
export interface TestBrokerOptions {
  /** Kept when given; otherwise a temporary directory that `stop` removes. */
  readonly dataDir?: string
  /** Default 0: a free port. Give the earlier broker's port to come back at the same address. */
  readonly port?: number
  readonly httpPort?: number
  /** Any configuration keys, snake_case as in eastguard.yaml. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly onFatal?: (error: Error) => void
}

export interface TestBroker {
  /** `host:port`, ready to be a client's seed. */
  readonly address: string
  readonly host: string
  readonly port: number
  readonly httpPort: number
  readonly dataDir: string
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

// What `eastguard/testing` and other embedders give and get.

/** Everything is optional. */
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

// Bounds of the native door. Each has a defined end: see connection.ts.

export interface NativeDoorSettings {
  readonly frameBytesMax: number
  readonly connectionsMax: number
  readonly requestsInFlightMax: number
  /** Bytes of requests that wait for their answer, per connection. */
  readonly connectionBytesMax: number
  /** Bytes of answers that wait for the client to read them, per connection. */
  readonly answerBytesMax: number
  readonly helloTimeoutMs: number
  readonly frameTimeoutMs: number
  readonly answerTimeoutMs: number
}

/** Streams that one connection may have open. */
export const STREAMS_MAX = 1000

// Time comes in here. Durations are measured on `monotonic`; `wall` is for what people and record timestamps see.

export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Milliseconds on a clock that never goes back; only differences mean anything. */
  monotonic(): number
  /** Milliseconds since 1970-01-01 UTC; may jump either way. A whole number. */
  wall(): number
  /** Runs `run` once, no earlier than `ms` from now. Does not keep the process alive. */
  after(ms: number, run: () => void): Timer
  /** Runs `run` when the events that are ready now have been handled (setImmediate). */
  nextTurn(run: () => void): void
}

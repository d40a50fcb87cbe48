// What the client needs of the world. The composition root (app/connect.ts) gives the real ones, the simulator its own.

import type { Clock } from '../ports/clock.ts'
import type { Compute } from '../ports/compute.ts'
import type { Log } from '../ports/log.ts'
import type { Random } from '../ports/random.ts'
import type { Streams } from '../ports/streams.ts'

export interface ClientPorts {
  readonly streams: Streams
  readonly clock: Clock
  readonly random: Random
  readonly compute: Compute
  readonly log: Log
}

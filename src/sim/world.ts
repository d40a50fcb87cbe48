// A whole world under one seed: virtual time, one network, and machines with the ports that a broker or a client runs
// on. The same seed and the same calls give the same run, to the byte.

import { type Prng, prng } from '../base/prng.ts'
import type { Clock } from '../ports/clock.ts'
import type { Compute } from '../ports/compute.ts'
import type { Datagrams } from '../ports/datagrams.ts'
import type { Disk } from '../ports/disk.ts'
import type { Http } from '../ports/http.ts'
import type { Metrics } from '../ports/metrics.ts'
import type { Random } from '../ports/random.ts'
import type { Streams } from '../ports/streams.ts'
import { SimClock } from './ports/clock.ts'
import { simCompute } from './ports/compute.ts'
import { type SimDisk, simDisk } from './ports/disk.ts'
import { type SimLog, simLog } from './ports/log.ts'
import { simMetrics } from './ports/metrics.ts'
import { type SimNetwork, simNetwork } from './ports/network.ts'
import { simRandom } from './ports/random.ts'

/** What one process sees. `disk` is the view of the process that runs now: mount again after a crash. */
interface MachinePorts {
  readonly clock: Clock
  readonly random: Random
  readonly disk: Disk
  readonly streams: Streams
  readonly datagrams: Datagrams
  readonly http: Http
  readonly compute: Compute
  readonly log: SimLog
  readonly metrics: Metrics
}

export interface World {
  readonly clock: SimClock
  readonly network: SimNetwork
  /** A disk of its own seed, whose operations take up to `latencyMs`. */
  disk(latencyMs?: number): SimDisk
  /** The ports of a process on `host`, working on `disk`. */
  machine(host: string, disk: SimDisk): MachinePorts
}

const DISK_LATENCY_MS = 2

export function simWorld(seed: number): World {
  const chance: Prng = prng(seed)
  const clock = new SimClock()
  const network = simNetwork({ clock, seed: chance.u32() })
  return {
    clock,
    network,
    disk: (latencyMs = DISK_LATENCY_MS) => {
      const source = prng(chance.u32())
      return simDisk({
        seed: chance.u32(),
        later: (run) => {
          clock.after(source.float() * latencyMs, run)
        },
      })
    },
    machine: (host, disk) => ({
      clock,
      random: simRandom(prng(chance.u32())),
      disk: disk.mount(),
      streams: network.streams(host),
      datagrams: network.datagrams(host),
      http: network.http(host),
      compute: simCompute,
      log: simLog(),
      metrics: simMetrics(),
    }),
  }
}

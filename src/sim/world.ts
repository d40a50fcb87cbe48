// A whole world under one seed: virtual time, one network, disks, and processes on machines. The same seed and the same
// calls give the same run, to the byte.

import { type Prng, prng } from '../base/prng.ts'
import { SimClock } from './ports/clock.ts'
import { type SimDisk, simDisk } from './ports/disk.ts'
import type { LogLine } from './ports/log.ts'
import { type NetworkOptions, type SimNetwork, simNetwork } from './ports/network.ts'
import { type MachineClock, trueClock } from './ports/own-clock.ts'
import { SimProcess } from './process.ts'

export interface DiskTiming {
  /** An operation takes up to this long, evenly drawn. */
  latencyMs: number
  /** Told of each operation before it begins; may kill the process that asked. */
  onOperation: () => void
}

export interface World {
  readonly clock: SimClock
  readonly network: SimNetwork
  /** A disk of its own seed. `timing` may change while it works. */
  disk(timing?: Partial<DiskTiming>): SimDisk
  /** A process that starts now on `host`, on `disk` if it has one. A restart is a new process. */
  process(
    host: string,
    disk?: SimDisk,
    onLog?: (line: LogLine) => void,
    machineClock?: MachineClock,
  ): SimProcess
}

/** Of the whole network, when nothing troubles it. */
export type NetworkConditions = Omit<NetworkOptions, 'clock' | 'seed'>

const DISK_LATENCY_MS = 2

export function simWorld(seed: number, conditions: NetworkConditions = {}): World {
  const chance: Prng = prng(seed)
  const clock = new SimClock()
  const network = simNetwork({ ...conditions, clock, seed: chance.u32() })
  return {
    clock,
    network,
    disk: (timing = {}) => {
      const source = prng(chance.u32())
      return simDisk({
        seed: chance.u32(),
        later: (run, slowMs) => {
          timing.onOperation?.()
          clock.after(slowMs + source.float() * (timing.latencyMs ?? DISK_LATENCY_MS), run)
        },
      })
    },
    process: (host, disk, onLog, machineClock = trueClock()) =>
      new SimProcess({ host, clock, machineClock, network, disk, onLog, seed: chance.u32() }),
  }
}

// One process on a simulated machine: the ports it runs on, until it is killed. From then on nothing that it asked for
// happens: its timers do not fire, its connections hear nothing more and its disk calls never come back. (JavaScript cannot
// be stopped in the middle of a turn, so what a dead process still computes has no way out.)

import { assert } from '../base/assert.ts'
import { prng } from '../base/prng.ts'
import type { Clock } from '../ports/clock.ts'
import type { Compute } from '../ports/compute.ts'
import type { Datagrams } from '../ports/datagrams.ts'
import type { Disk } from '../ports/disk.ts'
import type { Http } from '../ports/http.ts'
import type { Metrics } from '../ports/metrics.ts'
import type { Random } from '../ports/random.ts'
import type { Streams } from '../ports/streams.ts'
import type { SimClock } from './ports/clock.ts'
import { simCompute } from './ports/compute.ts'
import type { Crash, SimDisk } from './ports/disk.ts'
import { type LogLine, type SimLog, simLog } from './ports/log.ts'
import { simMetrics } from './ports/metrics.ts'
import type { SimNetwork } from './ports/network.ts'
import { simRandom } from './ports/random.ts'

export interface ProcessPorts {
  readonly clock: Clock
  readonly random: Random
  readonly streams: Streams
  readonly datagrams: Datagrams
  readonly http: Http
  readonly compute: Compute
  readonly log: SimLog
  readonly metrics: Metrics
}

interface Place {
  readonly host: string
  readonly clock: SimClock
  readonly network: SimNetwork
  readonly disk: SimDisk | undefined
  readonly seed: number
  readonly onLog: ((line: LogLine) => void) | undefined
}

export class SimProcess {
  readonly ports: ProcessPorts
  private readonly place: Place
  private readonly mounted: Disk | undefined
  alive = true

  constructor(place: Place) {
    const { host, clock, network, disk, seed } = place
    this.place = place
    this.mounted = disk?.mount()
    this.ports = {
      clock: this.ownClock(clock),
      random: simRandom(prng(seed)),
      streams: network.streams(host),
      datagrams: network.datagrams(host),
      http: network.http(host),
      compute: simCompute,
      log: simLog(place.onLog),
      metrics: simMetrics(),
    }
  }

  get disk(): Disk {
    assert(this.mounted !== undefined, `the process on ${this.place.host} has a disk`)
    return this.mounted
  }

  /** `crash` says what becomes of what it wrote and did not sync; by default the machine lives on and keeps it. */
  kill(crash: Crash = { keepUnsynced: true }): void {
    if (!this.alive) return
    this.alive = false
    this.place.disk?.crash(crash)
    this.place.network.kill(this.place.host)
  }

  private ownClock(clock: SimClock): Clock {
    const ifAlive = (run: () => void) => (): void => {
      if (this.alive) run()
    }
    return {
      monotonic: () => clock.monotonic(),
      wall: () => clock.wall(),
      after: (ms, run) => clock.after(ms, ifAlive(run)),
      nextTurn: (run) => clock.nextTurn(ifAlive(run)),
    }
  }
}

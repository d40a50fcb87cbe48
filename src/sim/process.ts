// One process on a simulated machine: the ports it runs on, until it is killed. From then on nothing that it asked for
// happens: its timers do not fire, its connections hear nothing more and its disk calls never come back. (JavaScript cannot
// be stopped in the middle of a turn, so what a dead process still computes has no way out.)
//
// A process that is paused (SIGSTOP) hears nothing either, until it is resumed: then all at once, as if no time had passed,
// and finds that time has. Its machine goes on meanwhile: bytes are acknowledged until its windows are full, calls are taken.

import { assert } from '../base/assert.ts'
import { prng } from '../base/prng.ts'
import type { Clock } from '../ports/clock.ts'
import type { Compute } from '../ports/compute.ts'
import type { Datagrams } from '../ports/datagrams.ts'
import type { Disk } from '../ports/disk.ts'
import type { Http } from '../ports/http.ts'
import type { Metrics } from '../ports/metrics.ts'
import type { Random } from '../ports/random.ts'
import type { Secrets } from '../ports/secrets.ts'
import type { Streams } from '../ports/streams.ts'
import type { SimClock } from './ports/clock.ts'
import { simCompute } from './ports/compute.ts'
import type { Crash, SimDisk } from './ports/disk.ts'
import { Gate } from './ports/gate.ts'
import { type LogLine, type SimLog, simLog } from './ports/log.ts'
import { simMetrics } from './ports/metrics.ts'
import type { SimNetwork } from './ports/network.ts'
import { type MachineClock, ownClock } from './ports/own-clock.ts'
import { simRandom } from './ports/random.ts'
import { simSecrets } from './ports/secrets.ts'

export interface ProcessPorts {
  readonly clock: Clock
  readonly random: Random
  readonly streams: Streams
  readonly datagrams: Datagrams
  readonly http: Http
  readonly compute: Compute
  readonly secrets: Secrets
  readonly log: SimLog
  readonly metrics: Metrics
}

interface Place {
  readonly host: string
  readonly clock: SimClock
  readonly machineClock: MachineClock
  readonly network: SimNetwork
  readonly disk: SimDisk | undefined
  readonly seed: number
  readonly onLog: ((line: LogLine) => void) | undefined
}

export class SimProcess {
  readonly ports: ProcessPorts
  private readonly place: Place
  private readonly gate: Gate
  private readonly mounted: Disk | undefined
  alive = true

  constructor(place: Place) {
    const { host, clock, network, disk, seed } = place
    this.place = place
    const gate = new Gate(clock)
    this.gate = gate
    this.mounted = disk?.mount()
    if (disk !== undefined) disk.answer = (run) => gate.pass(run)
    network.powerOn(host)
    this.ports = {
      clock: ownClock(clock, place.machineClock, gate),
      random: simRandom(prng(seed)),
      streams: network.streams(host, gate),
      datagrams: network.datagrams(host, gate),
      http: network.http(host, gate),
      compute: simCompute,
      secrets: simSecrets,
      log: simLog(place.onLog),
      metrics: simMetrics(),
    }
  }

  get disk(): Disk {
    assert(this.mounted !== undefined, `the process on ${this.place.host} has a disk`)
    return this.mounted
  }

  get paused(): boolean {
    return this.gate.held
  }

  /** Stops as by SIGSTOP. What comes meanwhile waits. */
  pause(): void {
    this.gate.hold()
  }

  /** All that has waited comes now, in its order; or what timers are due come first. */
  resume(options: { readonly timersFirst?: boolean } = {}): void {
    this.gate.release(options)
  }

  /** `crash` says what becomes of what it wrote and did not sync; by default the machine lives on and keeps it. */
  kill(crash: Crash = { keepUnsynced: true }): void {
    if (this.end(crash)) this.place.network.kill(this.place.host)
  }

  /** The machine under it is off: nobody is told, and nothing answers until a process is started on it again. */
  powerOff(crash: Crash): void {
    if (this.end(crash)) this.place.network.powerOff(this.place.host)
  }

  private end(crash: Crash): boolean {
    if (!this.alive) return false
    this.alive = false
    this.gate.close()
    const { disk } = this.place
    disk?.crash(crash)
    // Whoever looks at the disk from now on is no longer this process.
    if (disk !== undefined) disk.answer = (run) => run()
    return true
  }
}

// A broker of a run and the machine under it: starts it, kills it, and starts it again, as a supervisor would.
//
//   start ──> running ──kill, power cut, failed disk, stop──> down ──after downMs──> start
//               │ ^
//          pause│ │resume
//               v │
//              paused
//
// A start that fails is tried again; one that fails although no fault was injected since it began is a violation. On a disk
// that was restored a broker may be refused by the others as an older copy; it then stays down.

import type { EastGuardError } from '../base/errors.ts'
import type { NodeId } from '../model/ids.ts'
import { startServer } from '../server/server.ts'
import type { RunningBroker, ServerSettings } from '../server/types.ts'
import type { Crash, DiskImage, SimDisk } from './ports/disk.ts'
import type { FaultPlan } from './ports/disk-faults.ts'
import type { LogLine } from './ports/log.ts'
import { type MachineClock, trueClock } from './ports/own-clock.ts'
import type { SimProcess } from './process.ts'
import type { DiskTiming, World } from './world.ts'

/** Of a disk operation at most, while nothing slows the disk down. */
const CALM_LATENCY_MS = 1
/** A supervisor's pause before it starts a process that ended by itself. */
const RESTART_MS = 50
const START_MS_MAX = 20_000

/** What a broker may answer to a start on damaged files. */
const DAMAGE: ReadonlySet<string> = new Set([
  'DAMAGED',
  'DATA_DIR_MISMATCH',
  'DATA_DIR_NEWER',
  'DATA_DIR_UNUSABLE',
])

export interface Watcher {
  say(line: string): void
  violation(what: string): void
}

export interface MachineOptions {
  /** Its host, and its name in the story. */
  readonly host: string
  /** Of each start. */
  readonly settings: () => ServerSettings
  /** Default: that of the world. */
  readonly clock?: MachineClock
  /** A start that takes longer without a fault hangs. */
  readonly startMsMax?: number
  /** Before each start. */
  readonly onStart?: () => void
  /** Asked before each start; default: it may. */
  readonly mayStart?: () => boolean
  /** A broker says that it cannot go on; it ends, and is started again. */
  readonly onFatal?: (error: Error) => void
}

export class Machine {
  readonly host: string
  disk: SimDisk
  /** Of its broker, since it first told; another one when the disk is. */
  nodeId: NodeId | undefined
  clusterId: string | undefined
  private readonly timing: DiskTiming
  private readonly world: World
  private readonly watcher: Watcher
  private readonly options: MachineOptions
  private readonly clock: MachineClock
  private process: SimProcess | undefined
  private running: RunningBroker | undefined
  private metadata:
    | { readonly life: SimProcess; readonly shards: RunningBroker['shards'] }
    | undefined
  /** Starts so far; a later one makes what an earlier one still waits for meaningless. */
  private starts = 0
  private flipped = false
  private restored = false
  private refused = false
  /** Takes back failures that are still to come. */
  private planned: (() => void)[] = []
  /** Operations left until the planned crash. */
  private fuse: { operations: number; readonly run: () => void } | undefined

  constructor(world: World, options: MachineOptions, watcher: Watcher) {
    this.world = world
    this.host = options.host
    this.options = options
    this.clock = options.clock ?? trueClock()
    this.watcher = watcher
    this.timing = { latencyMs: CALM_LATENCY_MS, onOperation: () => this.burn() }
    this.disk = world.disk(this.timing)
  }

  /** Its part in the metadata, while its process lives and is not paused. */
  get shards(): RunningBroker['shards'] | undefined {
    const part = this.metadata
    return part?.life.alive === true && !part.life.paused ? part.shards : undefined
  }

  get ready(): boolean {
    return this.running !== undefined
  }

  start(): void {
    if (this.process !== undefined || this.options.mayStart?.() === false) return
    const start = ++this.starts
    this.refused = false
    const { settings, onStart, startMsMax = START_MS_MAX } = this.options
    onStart?.()
    const life = this.world.process(this.host, this.disk, (line) => this.tell(line), this.clock)
    this.process = life
    const faultsBefore = this.disk.failures
    const begun = this.world.clock.monotonic()
    this.say('starts')
    const late = this.world.clock.after(startMsMax, () => {
      if (this.starts === start && this.process === life && this.running === undefined) {
        this.watcher.violation(`a start did not end within ${startMsMax} ms`)
      }
    })
    startServer({
      ports: { ...life.ports, disk: life.disk },
      settings: settings(),
      version: '0.0.0',
      hooks: {
        onFatal: (error) => {
          if (this.process === life) this.options.onFatal?.(error)
          this.died(life, `it cannot go on: ${error.message}`)
        },
        onMetadata: ({ nodeId, shards }) => {
          this.nodeId = nodeId
          this.metadata = { life, shards }
        },
      },
    }).then(
      (running) => {
        late.cancel()
        if (!life.alive) return
        this.running = running
        this.clusterId = running.clusterId
        const took = Math.round(this.world.clock.monotonic() - begun)
        this.say(`ready after ${took} ms`)
      },
      (error: unknown) => {
        late.cancel()
        if (!life.alive) return
        const { code, message } = error as EastGuardError
        const isCopy = this.restored && code === 'DATA_DIR_MISMATCH'
        if (isCopy || (this.flipped && DAMAGE.has(code))) {
          this.refused = true
          this.say(`refuses to start: ${code} ${message}`)
          return
        }
        if (this.disk.failures === faultsBefore) {
          this.watcher.violation(`the ${this.host} does not start: ${code ?? ''} ${message}`)
        }
        this.died(life, `the start failed: ${code ?? ''} ${message}`)
      },
    )
  }

  /** The process ends; `crash` says what becomes of unsynced bytes. */
  kill(crash: Crash, downMs: number, how: string): void {
    this.end(crash, downMs, how, (life) => life.kill(crash))
  }

  /** The machine goes dark: nobody is told, and nothing answers until it starts again. */
  powerOff(crash: Crash, downMs: number, how: string): void {
    this.end(crash, downMs, how, (life) => life.powerOff(crash))
    this.world.network.powerOff(this.host)
  }

  private end(crash: Crash, downMs: number, how: string, kill: (life: SimProcess) => void): void {
    this.say(how)
    // A power cut may hit a machine whose broker is down.
    if (this.process === undefined) this.disk.crash(crash)
    else kill(this.process)
    this.process = undefined
    this.running = undefined
    const starts = this.starts
    this.world.clock.after(downMs, () => {
      if (this.starts === starts) this.start()
    })
  }

  /** For `forMs`, by the world's clock, the process stands still; if it lives then, it goes on. */
  pause(forMs: number, timersFirst: boolean): boolean {
    const life = this.process
    if (life === undefined || life.paused) return false
    this.say(`is paused for ${forMs} ms`)
    life.pause()
    this.world.clock.after(forMs, () => {
      if (life.alive && life.paused) this.say('goes on')
      life.resume({ timersFirst })
    })
    return true
  }

  /** Everything on its disk is gone. The broker is killed first. */
  wipe(downMs: number): void {
    this.kill({ keepUnsynced: false }, downMs, 'loses its disk and gets an empty one')
    this.disk = this.world.disk(this.timing)
    this.nodeId = undefined
    this.planned = []
    this.restored = false
  }

  /** Its disk is as it was at some time. The broker is killed first. */
  restore(image: DiskImage, downMs: number, from: string): void {
    this.kill({ keepUnsynced: false }, downMs, `gets its disk back as it was ${from}`)
    this.disk.restore(image)
    this.restored = true
  }

  crashAfter(operations: number, run: () => void): void {
    this.fuse = { operations, run }
  }

  /** Some bit has flipped: from then on the broker may refuse, but only what it calls damaged. */
  get rotten(): boolean {
    return this.flipped
  }

  /** The broker does not start on what has become of its disk. */
  get refuses(): boolean {
    return this.refused
  }

  /** `file` and `byte` say which, as shares of what there is. */
  rot(prefix: string, file: number, byte: number, bit: number): void {
    const paths = this.disk.paths().filter((path) => path.startsWith(prefix) && path !== 'lock')
    const path = paths[Math.floor(file * paths.length)]
    if (path === undefined) return
    // Files that were taken in advance end in zeros, of which one is like the other.
    const used = this.disk.bytesOf(path).findLastIndex((value) => value !== 0) + 1
    if (used === 0) return
    const at = Math.floor(byte * used)
    this.flipped = true
    this.disk.flipBit(path, at, bit)
    this.sayOfDisk(`bit ${bit} of byte ${at} of ${path} flips`)
  }

  /** Ends the broker as SIGTERM does, runs `down`, then lets it start again. */
  stop(downMs: number, down: () => void = () => {}): Promise<void> {
    const { process: life, running } = this
    if (life === undefined || running === undefined) return Promise.resolve()
    this.say('is asked to stop')
    const faultsBefore = this.disk.failures
    return running.stop().then(
      () => {
        if (!life.alive) return
        this.kill({ keepUnsynced: true }, downMs, 'has stopped')
        down()
      },
      (error: unknown) => {
        if (!life.alive) return
        if (this.disk.failures === faultsBefore)
          this.watcher.violation(`a stop failed: ${String(error)}`)
        this.kill({ keepUnsynced: true }, downMs, `stopped with ${String(error)}`)
      },
    )
  }

  /** Of a disk operation at most, as things are. */
  get latencyMs(): number {
    return this.timing.latencyMs
  }

  slowDown(latencyMs: number, forMs: number): void {
    this.timing.latencyMs = latencyMs
    this.world.clock.after(forMs, () => {
      this.timing.latencyMs = CALM_LATENCY_MS
    })
  }

  /** Its own wall clock is set forward or back. */
  setWall(byMs: number): void {
    this.say(`wall clock is set by ${byMs} ms`)
    this.clock.wallShiftMs += byMs
  }

  failNext(operation: 'sync' | 'write', prefix: string): void {
    this.sayOfDisk(`the next ${operation} below '${prefix}' will fail`)
    this.planned.push(this.disk.fail({ operation, path: prefix, fault: 'io' }))
  }

  fail(plan: Required<Omit<FaultPlan, 'fault'>>): void {
    const { operation, path, spared, times } = plan
    this.sayOfDisk(`after ${spared}, ${times} of ${operation} below '${path}' will fail`)
    this.planned.push(this.disk.fail({ ...plan, fault: 'io' }))
  }

  setFull(full: boolean): void {
    this.sayOfDisk(full ? 'is full' : 'has room again')
    this.disk.capacityBytes = full ? 0 : Number.POSITIVE_INFINITY
  }

  /** No more than `leftBytes` fit on its disk beside what is there. */
  fill(leftBytes: number): void {
    this.sayOfDisk(`has room for ${leftBytes} bytes more`)
    this.disk.capacityBytes = this.disk.usedBytes() + leftBytes
  }

  /** Ends all faults, and sees that there is a broker. */
  calm(): void {
    this.fuse = undefined
    this.timing.latencyMs = CALM_LATENCY_MS
    this.disk.capacityBytes = Number.POSITIVE_INFINITY
    for (const takeBack of this.planned) takeBack()
    if (this.process?.paused === true) this.say('goes on')
    this.process?.resume()
    this.start()
  }

  private say(what: string): void {
    this.watcher.say(`${this.host}: ${what}`)
  }

  private sayOfDisk(what: string): void {
    this.watcher.say(`disk of ${this.host}: ${what}`)
  }

  private tell({ level, message, fields }: LogLine): void {
    if (level === 'debug') return
    const { err, ...rest } = fields
    const why = err instanceof Error ? `: ${err.message}` : ''
    this.say(`${level}: ${message}${why} ${JSON.stringify(rest)}`)
  }

  private died(life: SimProcess, why: string): void {
    if (this.process !== life) return
    // The callbacks of this turn still run, as in a process that is about to exit.
    this.world.clock.nextTurn(() => {
      if (this.process === life) this.kill({ keepUnsynced: true }, RESTART_MS, `ends, ${why}`)
    })
  }

  private burn(): void {
    const { fuse } = this
    if (fuse === undefined || --fuse.operations > 0) return
    this.fuse = undefined
    fuse.run()
  }
}

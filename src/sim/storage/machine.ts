// The one broker of a run and the machine under it: starts it, kills it, and starts it again, as a supervisor would.
//
//   start ──> running ──kill, power cut, failed disk, stop──> down ──after downMs──> start
//
// A start that fails is tried again; one that fails although no fault was injected since it began is a violation.

import type { EastGuardError } from '../../base/errors.ts'
import type { NativeDoorSettings } from '../../doors/native/settings.ts'
import { minInsyncDefault, POLICY_DEFAULTS } from '../../model/policy.ts'
import { startServer } from '../../server/server.ts'
import type { RunningBroker, ServerSettings } from '../../server/types.ts'
import type { Crash, SimDisk } from '../ports/disk.ts'
import type { LogLine } from '../ports/log.ts'
import type { SimProcess } from '../process.ts'
import type { DiskTiming, World } from '../world.ts'
import { saltsOn } from './forgery.ts'
import type { Step, StoragePlan } from './plan.ts'

export const BROKER_HOST = 'broker'
export const BROKER_PORT = 2921
const HTTP_PORT = 2924
/** Of a disk operation at most, while nothing slows the disk down. */
export const CALM_LATENCY_MS = 1
/** A supervisor's pause before it starts a process that ended by itself. */
const RESTART_MS = 50
/** A start that takes longer than this without a fault hangs. */
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

export class Machine {
  readonly disk: SimDisk
  private readonly timing: DiskTiming
  private readonly world: World
  private readonly watcher: Watcher
  private readonly settings: ServerSettings
  private process: SimProcess | undefined
  private running: RunningBroker | undefined
  /** Starts so far; a later one makes what an earlier one still waits for meaningless. */
  private starts = 0
  private salts: readonly number[] = []
  private flipped = false
  private refused = false
  /** Takes back failures that are still to come. */
  private readonly planned: (() => void)[] = []
  /** Operations left until the planned crash. */
  private fuse: { operations: number; readonly run: () => void } | undefined

  constructor(world: World, plan: StoragePlan, watcher: Watcher) {
    this.world = world
    this.watcher = watcher
    this.timing = { latencyMs: CALM_LATENCY_MS, onOperation: () => this.burn() }
    this.disk = world.disk(this.timing)
    this.settings = settingsOf(plan)
  }

  get ready(): boolean {
    return this.running !== undefined
  }

  start(): void {
    if (this.process !== undefined) return
    const start = ++this.starts
    this.salts = saltsOn(this.disk)
    const life = this.world.process(BROKER_HOST, this.disk, (line) => this.tell(line))
    this.process = life
    const faultsBefore = this.disk.failures
    const begun = this.world.clock.monotonic()
    this.watcher.say('broker: starts')
    const late = this.world.clock.after(START_MS_MAX, () => {
      if (this.starts === start && this.process === life && this.running === undefined) {
        this.watcher.violation(`a start did not end within ${START_MS_MAX} ms`)
      }
    })
    startServer({
      ports: { ...life.ports, disk: life.disk },
      settings: this.settings,
      version: '0.0.0',
      hooks: { onFatal: (error) => this.died(life, `the disk failed: ${error.message}`) },
    }).then(
      (running) => {
        late.cancel()
        if (!life.alive) return
        this.running = running
        const took = Math.round(this.world.clock.monotonic() - begun)
        this.watcher.say(`broker: ready after ${took} ms`)
      },
      (error: unknown) => {
        late.cancel()
        if (!life.alive) return
        const { code, message } = error as EastGuardError
        if (this.flipped && DAMAGE.has(code)) {
          this.refused = true
          this.watcher.say(`broker: refuses to start: ${code} ${message}`)
          return
        }
        if (this.disk.failures === faultsBefore) {
          this.watcher.violation(`the broker does not start: ${code ?? ''} ${message}`)
        }
        this.died(life, `the start failed: ${code ?? ''} ${message}`)
      },
    )
  }

  /** The process ends; `crash` says what becomes of unsynced bytes. */
  kill(crash: Crash, downMs: number, how: string): void {
    this.watcher.say(`broker: ${how}`)
    // A power cut may hit a machine whose broker is down.
    if (this.process === undefined) this.disk.crash(crash)
    this.process?.kill(crash)
    this.process = undefined
    this.running = undefined
    const starts = this.starts
    this.world.clock.after(downMs, () => {
      if (this.starts === starts) this.start()
    })
  }

  crashAfter(operations: number, run: () => void): void {
    this.fuse = { operations, run }
  }

  /** Of log files that the present process has not written: it must have chosen others. */
  get saltsBefore(): readonly number[] {
    return this.salts
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
    this.watcher.say(`disk: bit ${bit} of byte ${at} of ${path} flips`)
  }

  /** Ends the broker as SIGTERM does, runs `down`, then lets it start again. */
  stop(downMs: number, down: () => void = () => {}): Promise<void> {
    const { process: life, running } = this
    if (life === undefined || running === undefined) return Promise.resolve()
    this.watcher.say('broker: is asked to stop')
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

  setLatency(ms: number): void {
    this.timing.latencyMs = ms
  }

  failNext(operation: 'sync' | 'write', prefix: string): void {
    this.watcher.say(`disk: the next ${operation} below '${prefix}' will fail`)
    this.planned.push(this.disk.fail({ operation, path: prefix, fault: 'io' }))
  }

  fail({ operation, prefix, spared, times }: Extract<Step, { kind: 'fail' }>): void {
    this.watcher.say(`disk: after ${spared}, ${times} of ${operation} below '${prefix}' will fail`)
    this.planned.push(this.disk.fail({ operation, path: prefix, fault: 'io', spared, times }))
  }

  setFull(full: boolean): void {
    this.watcher.say(full ? 'disk: is full' : 'disk: has room again')
    this.disk.capacityBytes = full ? 0 : Number.POSITIVE_INFINITY
  }

  /** Ends all faults, and sees that there is a broker. */
  calm(): void {
    this.fuse = undefined
    this.timing.latencyMs = CALM_LATENCY_MS
    this.disk.capacityBytes = Number.POSITIVE_INFINITY
    for (const takeBack of this.planned) takeBack()
    this.start()
  }

  private tell({ level, message, fields }: LogLine): void {
    if (level === 'debug') return
    const { err, ...rest } = fields
    const why = err instanceof Error ? `: ${err.message}` : ''
    this.watcher.say(`broker: ${level}: ${message}${why} ${JSON.stringify(rest)}`)
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

/** Wide enough for a few clients, and quick to end what hangs. */
export const DOOR_SETTINGS: NativeDoorSettings = {
  frameBytesMax: 4 * 1024 * 1024,
  connectionsMax: 100,
  requestsInFlightMax: 1000,
  connectionBytesMax: 16 * 1024 * 1024,
  answerBytesMax: 16 * 1024 * 1024,
  helloTimeoutMs: 5000,
  frameTimeoutMs: 5000,
  answerTimeoutMs: 5000,
}

function settingsOf({ settings }: StoragePlan): ServerSettings {
  return {
    ...settings,
    host: BROKER_HOST,
    advertiseHost: BROKER_HOST,
    clientPort: BROKER_PORT,
    httpPort: HTTP_PORT,
    displayName: 'simulated',
    defaultReplicationFactor: 1,
    defaultPolicy: (replicationFactor) => ({
      ...POLICY_DEFAULTS,
      replicationFactor,
      minInsyncReplicas: minInsyncDefault(replicationFactor),
    }),
    retentionCheckMs: 1000,
    producerIdExpiryMs: 7 * 24 * 3600 * 1000,
    drainTimeoutMs: 200,
    metadataShards: 4,
    metadataTiming: { electionTimeoutMs: 1000, heartbeatMs: 200, timeoutMs: 8000 },
    reserveBytes: 256 * 1024,
    ...DOOR_SETTINGS,
  }
}

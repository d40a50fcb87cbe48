// Brokers as far as metadata goes, in virtual time: journals on simulated disks, shards, and links that delay, reorder and
// lose. A seed decides who proposes what and where, who crashes and what is left of what was not synced, who is cut off, who
// becomes a member and who is removed; snapshots are tiny and journal files short, so that there is always one being written.
//
//   trouble for a while ─> peace: all links and brokers are back ─> every broker has to know everything in time
//
// What must hold stands in truth.ts.

import { type Prng, prng } from '../../../src/base/prng.ts'
import { openShardedLog, type ShardedLog } from '../../../src/broker/metadata/sharded-log.ts'
import { type NodeId, nodeId } from '../../../src/model/ids.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import type { Metrics } from '../../../src/ports/metrics.ts'
import { SimClock } from '../../../src/sim/ports/clock.ts'
import { type SimDisk, simDisk } from '../../../src/sim/ports/disk.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import { simRandom } from '../../../src/sim/ports/random.ts'
import { openJournal } from '../../../src/storage/journal/journal.ts'
import type { PeerMessage } from '../../../src/wire/peer/types.ts'
import { settle } from '../../ports/support.ts'
import { keptLog } from '../../storage/support/ports.ts'
import { Truth } from './truth.ts'

export const SHARDS = 2
/** One of them is drawn. Alone, everything rests on one disk. */
const BROKERS = [1, 3, 4, 5]
const JOURNAL_FILE_BYTES = 16 * 1024
const DISK_MS = 3
const LINK_MS = 12

export interface Broker {
  readonly id: NodeId
  readonly disk: SimDisk
  boot: number
  running: boolean
  log: ShardedLog | undefined
  metrics: Metrics
  /** Lines of the log, of every start. */
  readonly logged: ReturnType<typeof keptLog>
}

export class World {
  readonly clock: SimClock = new SimClock()
  readonly truth: Truth = new Truth()
  readonly brokers: readonly Broker[]
  readonly chance: Prng
  private readonly cut = new Set<string>()
  private lossy = 0
  /** When the last frame from one to another arrives. */
  private readonly arrivals = new Map<string, number>()

  constructor(seed: number, brokers?: number) {
    this.chance = prng(seed)
    const later = (run: () => void): void => {
      this.clock.after(this.chance.below(DISK_MS + 1), run)
    }
    const drawn = BROKERS[this.chance.below(BROKERS.length)] as number
    this.brokers = Array.from({ length: brokers ?? drawn }, (_, i) => ({
      id: nodeId(String(i + 1).padStart(32, '0')),
      disk: simDisk({ seed: seed * 8 + i, later }),
      boot: 0,
      running: false,
      log: undefined,
      metrics: simMetrics(),
      logged: keptLog(),
    }))
  }

  // Time.

  async run(ms: number): Promise<void> {
    await this.clock.advance(ms, settle)
  }

  /** Until `done`, but no longer than that; whether it was. */
  async runUntil(done: () => boolean, ms: number): Promise<boolean> {
    const until = this.clock.monotonic() + ms
    while (!done()) {
      if (this.clock.monotonic() >= until) return false
      await this.run(50)
    }
    return true
  }

  // Brokers.

  /** Unless it runs. */
  start(broker: Broker): void {
    if (broker.running) return
    broker.running = true
    const boot = ++broker.boot
    void this.open(broker, boot).catch((error: unknown) => {
      if (broker.boot !== boot) return
      const why = error instanceof Error ? error.message : 'it does not say why'
      this.truth.violated(`broker ${broker.id} cannot start: ${why}`)
    })
  }

  private async open(broker: Broker, boot: number): Promise<void> {
    const { id, disk } = broker
    const alive = (): boolean => broker.boot === boot
    const clock = this.clockOf(alive)
    const random = simRandom(prng(this.chance.below(2 ** 31)))
    const onFailed = (error: Error): void => {
      if (alive()) this.truth.violated(`broker ${id} failed: ${error.message}`)
    }
    const journal = await openJournal({
      disk: disk.mount(),
      clock,
      random,
      log: keptLog(),
      fileBytes: JOURNAL_FILE_BYTES,
      identity: { nodeIdBytes: new Uint8Array(16), bootCount: boot },
      onFailed,
      mayHoldNothing: true,
    })
    if (!alive()) return
    for (let shard = 0; shard < SHARDS; shard++) {
      const broken = this.truth.promises.broken(id, shard, journal)
      if (broken !== undefined) this.truth.violated(broken)
    }
    const metrics = simMetrics()
    broker.metrics = metrics
    broker.log = openShardedLog({
      ports: { clock, random, log: broker.logged, metrics },
      journal,
      nodeId: id,
      founder: broker === this.brokers[0],
      shards: SHARDS,
      electionTimeoutMs: 300,
      heartbeatMs: 60,
      timeoutMs: 1500,
      snapshotBytesLeast: 400,
      entriesKept: 4,
      send: (to, messages) => {
        if (!alive()) return
        this.truth.sent(`${id} ${boot}`, messages)
        this.send(id, to, messages)
      },
      others: () => this.brokers.filter((other) => other !== broker).map((other) => other.id),
      onLead: () => {},
      onFailed,
    })
  }

  private clockOf(alive: () => boolean): Clock {
    const { clock } = this
    const ifAlive = (run: () => void) => (): void => {
      if (alive()) run()
    }
    return {
      monotonic: () => clock.monotonic(),
      wall: () => clock.wall(),
      after: (ms, run) => clock.after(ms, ifAlive(run)),
      nextTurn: (run) => clock.nextTurn(ifAlive(run)),
    }
  }

  /** Its process is gone; of what was not synced any part may be there. */
  crash(broker: Broker): void {
    broker.boot++
    broker.running = false
    broker.log = undefined
    broker.disk.crash({ keepUnsynced: this.chance.below(4) === 0 ? true : 'some' })
  }

  // Links.

  private send(from: NodeId, to: NodeId, messages: readonly PeerMessage[]): void {
    const link = `${from} ${to}`
    if (this.cut.has(link) || this.chance.float() < this.lossy) return
    const now = this.clock.monotonic()
    const soonest = now + 1 + this.chance.below(LINK_MS)
    // In order on one connection; now and then there is a new one, and what was on the old one comes late.
    const ordered = Math.max(soonest, this.arrivals.get(link) ?? 0)
    const late = this.chance.below(50) === 0
    const at = late ? soonest + this.chance.below(400) : ordered
    if (!late) this.arrivals.set(link, at)
    this.clock.after(at - now, () => {
      if (this.cut.has(link)) return
      this.brokers.find(({ id }) => id === to)?.log?.shards.receive(from, messages)
    })
  }

  /** From each other broker, and each from it, if so decided. */
  cutOff(one: Broker, decide: () => boolean = () => true): void {
    for (const other of this.brokers) {
      if (other === one) continue
      if (decide()) this.cut.add(`${one.id} ${other.id}`)
      if (decide()) this.cut.add(`${other.id} ${one.id}`)
    }
  }

  lose(share: number): void {
    this.lossy = share
  }

  heal(): void {
    this.cut.clear()
    this.lossy = 0
  }
}

// One machine of a judged cluster: an address, a disk with an identity, a clock that runs at its own rate, and while the
// process runs, a member. A stopped process (SIGSTOP) hears nothing and finds everything that arrived when it goes on.

import type { Address } from '../../../src/base/address.ts'
import { fromHex, toHex } from '../../../src/base/bytes.ts'
import type { Prng } from '../../../src/base/prng.ts'
import { Swim } from '../../../src/core/swim/swim.ts'
import { type PacketSizes, SWIM_SETTINGS, type SwimSettings } from '../../../src/core/swim/types.ts'
import { type NodeId, nodeId } from '../../../src/model/ids.ts'
import type { ClusterIdentity, Profile } from '../../../src/model/swim.ts'
import { HINT_BYTES, updateBytes } from '../../../src/wire/swim/fields.ts'
import { packetRoom } from '../../../src/wire/swim/packet.ts'
import { Observed, type Truth } from './truth.ts'

export const SIZES: PacketSizes = { room: packetRoom, update: updateBytes, hint: HINT_BYTES }

/** The defaults, but for what would only make the trouble longer. */
export const SETTINGS: SwimSettings = {
  ...SWIM_SETTINGS,
  deadProbeMaxMs: 10_000,
  seedRetryMs: 15_000,
}

export function addressOf(machine: number): Address {
  return { host: `h${machine}`, port: 2922 }
}

export interface Disk {
  node: NodeId
  boot: number
  cluster: ClusterIdentity | undefined
}

export class Machine {
  readonly index: number
  disk: Disk
  swim: Swim | undefined
  /** Of this life; what was meant for an earlier one is meaningless. */
  life = 0
  stopped = false
  /** It is to be stopped for so long when it next asks somebody and waits for the answer. */
  stopAtPingMs = 0
  /** When the process was started, or went on, in true time. */
  awakeSince = 0
  /** Things that arrived while the process was stopped. */
  readonly backlog: (() => void)[] = []
  observed: Observed
  /** Of the clock's next event for this member, in true time. */
  wakeAt: number = Number.POSITIVE_INFINITY
  packetsSent = 0
  /** In this second of true time, and in the busiest. */
  private second = 0
  private sentInSecond = 0
  mostInSecond = 0
  refused = false
  private readonly settings: SwimSettings
  private readonly chance: Prng
  private readonly truth: Truth
  private readonly rate: number
  private readonly zero: number

  constructor(index: number, settings: SwimSettings, chance: Prng, truth: Truth) {
    this.index = index
    this.settings = settings
    this.chance = chance
    this.truth = truth
    this.rate = 0.975 + chance.float() * 0.05
    this.zero = chance.float() * 1e6
    this.disk = { node: this.newId(), boot: 0, cluster: undefined }
    this.observed = new Observed(truth, this.name)
  }

  get name(): string {
    return `m${this.index}`
  }

  /** A member that takes part. */
  get runs(): boolean {
    return this.swim !== undefined
  }

  clock(trueTime: number): number {
    return this.zero + trueTime * this.rate
  }

  trueTime(clock: number): number {
    return (clock - this.zero) / this.rate
  }

  sends(trueTime: number): void {
    const second = Math.floor(trueTime / 1000)
    if (second !== this.second) this.sentInSecond = 0
    this.second = second
    this.packetsSent++
    this.mostInSecond = Math.max(this.mostInSecond, ++this.sentInSecond)
  }

  wipe(): void {
    this.disk = { node: this.newId(), boot: 0, cluster: undefined }
  }

  /** `sameBoot`: the disk was put back as it was before the last start. */
  start(trueTime: number, sameBoot: boolean): Swim {
    if (!sameBoot || this.disk.boot === 0) this.disk.boot++
    this.life++
    this.wakeAt = Number.POSITIVE_INFINITY
    this.stopped = false
    this.refused = false
    this.stopAtPingMs = 0
    this.awakeSince = trueTime
    this.backlog.length = 0
    this.observed = new Observed(this.truth, this.name)
    this.swim = new Swim(
      {
        node: this.disk.node,
        boot: this.disk.boot,
        nonce: this.chance.u32(),
        cluster: this.disk.cluster,
        peers: [],
        profile: this.profile(0),
        settings: this.settings,
        sizes: SIZES,
        chance: () => this.chance.float(),
      },
      this.clock(trueTime),
    )
    return this.swim
  }

  profile(loadBytes: number): Profile {
    return {
      name: `${this.name}.${this.disk.boot}`,
      cluster: addressOf(this.index),
      client: { host: `broker-${this.index}.example`, port: 2921 },
      data: { host: `broker-${this.index}.example`, port: 2923 },
      hostLabel: `host-${this.index}`,
      rackLabel: `rack-${this.index % 3}`,
      capacityBytes: 1e12,
      loadBytes,
    }
  }

  kill(): void {
    this.swim = undefined
    this.life++
    this.stopped = false
    this.backlog.length = 0
  }

  private newId(): NodeId {
    return nodeId(toHex(this.chance.bytes(16)))
  }
}

/** For stories: the first of its digits. */
export function brief(node: NodeId): string {
  return toHex(fromHex(node).subarray(0, 3))
}

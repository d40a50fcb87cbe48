// Takes the steps of a plan. Faults of links overlap: whatever holds at a moment is the sum of those that have begun and
// have not ended, so each beginning and each end makes the whole network's conditions anew.

import type { Machine, Watcher } from '../machine.ts'
import type { DiskImage } from '../ports/disk.ts'
import type { World } from '../world.ts'
import type { Membership } from './membership.ts'
import type { Step } from './step.ts'

type LinkStep = Extract<Step, { kind: 'partition' | 'cut' | 'slow-link' | 'lossy-link' }>
type ConnectionStep = Extract<Step, { kind: 'reset' | 'reset-after' | 'half-open' }>
type MemberStep = Extract<Step, { kind: 'move' | 'hand-over' }>
type MachineStep = Exclude<Step, LinkStep | ConnectionStep | MemberStep>

export interface FaultsOptions {
  readonly world: World
  readonly machines: readonly Machine[]
  /** Absent: the brokers themselves decide who keeps what, and steps of that are no faults. */
  readonly membership?: Membership
  /** Of everybody, clients too. */
  readonly hosts: readonly string[]
  readonly watcher: Watcher
  /** What a broker had on its disk is gone, all or the last of it. */
  readonly onDiskLost: (broker: number) => void
}

export class Faults {
  /** By kind: how often it has had something to strike. */
  readonly hits: Map<string, number> = new Map()
  private readonly options: FaultsOptions
  private readonly active = new Set<LinkStep>()
  private readonly copies = new Map<number, { readonly image: DiskImage; readonly atMs: number }>()
  private over = false

  constructor(options: FaultsOptions) {
    this.options = options
  }

  /** Some link is not as it should be. */
  get linksAreBad(): boolean {
    return this.active.size > 0
  }

  take(step: Step): void {
    if (!this.over && this.strike(step)) this.hit(step.kind)
  }

  /** All faults end. */
  calm(): void {
    const { world, machines } = this.options
    this.over = true
    this.active.clear()
    world.network.disarm()
    this.weather()
    for (const machine of machines) machine.calm()
  }

  /** Two never reach each other again. */
  cutForEver(from: string, to: string): void {
    this.begin({ kind: 'cut', from, to, way: 'both', forMs: Number.POSITIVE_INFINITY })
    this.hit('lasting cut')
  }

  hit(kind: string): void {
    this.hits.set(kind, (this.hits.get(kind) ?? 0) + 1)
  }

  private strike(step: Step): boolean {
    switch (step.kind) {
      case 'partition':
      case 'cut':
      case 'slow-link':
      case 'lossy-link':
        this.begin(step)
        return true
      case 'reset':
      case 'reset-after':
      case 'half-open':
        return this.strikeConnections(step)
      case 'move':
        this.options.membership?.move(step.shard, step.broker)
        return true
      case 'hand-over':
        return this.options.membership?.handOver(step.shard, step.broker) ?? false
      case 'power-cut':
        return this.cutPower(step)
      case 'pause':
      case 'kill':
      case 'crash-at-operation':
      case 'stop':
      case 'wall':
      case 'slow-disk':
      case 'fail-disk':
      case 'wipe':
      case 'copy':
      case 'restore':
        return this.strikeMachine(step, this.options.machines[step.broker] as Machine)
    }
  }

  private strikeConnections(step: ConnectionStep): boolean {
    const { world, watcher } = this.options
    const { network } = world
    switch (step.kind) {
      case 'reset':
        watcher.say(`network: all connections of ${step.host} are reset`)
        network.resetConnections(step.host)
        return true
      case 'reset-after': {
        const from = this.peerOf(step.to, step.peer)
        if (from === undefined) return false
        watcher.say(`network: byte ${step.bytes} from ${from} to ${step.to} will be the last`)
        network.resetAfter(from, step.to, step.bytes)
        // Whether that byte ever comes is seen in the network's own counts.
        return false
      }
      case 'half-open': {
        const other = this.peerOf(step.gone, step.peer)
        if (other === undefined) return false
        watcher.say(
          `network: ${step.gone} gives up its connections with ${other}, which is not told`,
        )
        return network.halfOpen(step.gone, other) > 0
      }
    }
  }

  private peerOf(host: string, share: number): string | undefined {
    const peers = this.options.world.network.peersOf(host)
    return peers[Math.floor(share * peers.length)]
  }

  private begin(step: LinkStep): void {
    const { world, watcher } = this.options
    this.active.add(step)
    this.weather()
    const lasts = step.forMs === Number.POSITIVE_INFINITY
    watcher.say(`network: ${told(step)}${lasts ? ' ever again' : ''}`)
    if (lasts) return
    world.clock.after(step.forMs, () => {
      if (!this.active.delete(step)) return
      this.weather()
      watcher.say(`network: over: ${told(step)}`)
    })
  }

  private weather(): void {
    const { world, hosts } = this.options
    const { network } = world
    network.calm()
    for (const step of this.active) {
      switch (step.kind) {
        case 'partition': {
          const inside = new Set(step.side)
          for (const from of hosts) {
            for (const to of hosts) {
              if (inside.has(from) === inside.has(to)) continue
              if (step.way === 'both' || inside.has(from) === (step.way === 'out'))
                network.cut(from, to)
            }
          }
          break
        }
        case 'cut':
          network.cut(step.from, step.to)
          if (step.way === 'both') network.cut(step.to, step.from)
          break
        case 'slow-link': {
          const { from, to, latencyMs, bytesPerMs } = step
          network.change(from, to, { latencyMs: [latencyMs / 2, latencyMs], bytesPerMs })
          break
        }
        case 'lossy-link': {
          const { from, to, lost, doubled, late, lateMs } = step
          const delays = { stragglers: late, stragglerMs: lateMs }
          network.change(from, to, { packetLoss: lost, packetDoubling: doubled, ...delays })
        }
      }
    }
  }

  private strikeMachine(
    step: Exclude<MachineStep, { kind: 'power-cut' }>,
    machine: Machine,
  ): boolean {
    const { world } = this.options
    const { ready } = machine
    switch (step.kind) {
      case 'pause':
        return machine.pause(step.forMs, step.timersFirst)
      case 'kill':
        machine.kill({ keepUnsynced: true }, step.downMs, 'is killed')
        return ready
      case 'crash-at-operation':
        this.crashLater(machine, step)
        return false
      case 'stop':
        void machine.stop(step.downMs)
        return ready
      case 'wall':
        machine.setWall(step.byMs)
        return true
      case 'slow-disk':
        machine.slowDown(step.latencyMs, step.forMs)
        return true
      case 'fail-disk':
        machine.failNext(step.operation, step.prefix)
        return true
      case 'wipe':
        machine.wipe(step.downMs)
        this.options.onDiskLost(step.broker)
        return true
      case 'copy':
        this.copies.set(step.broker, {
          image: machine.disk.snapshot(),
          atMs: Math.round(world.clock.monotonic()),
        })
        return true
      case 'restore': {
        const copy = this.copies.get(step.broker)
        if (copy === undefined) return false
        machine.restore(copy.image, step.downMs, `at ${copy.atMs} ms`)
        this.options.onDiskLost(step.broker)
        return true
      }
    }
  }

  private cutPower({ brokers, keep, downMs }: Extract<Step, { kind: 'power-cut' }>): boolean {
    for (const [i, broker] of brokers.entries()) {
      const machine = this.options.machines[broker] as Machine
      const crash = { keepUnsynced: keep === 'some' ? keep : false } as const
      machine.powerOff(crash, downMs[i] ?? 1, `loses its power, ${keep} of what was unsynced stays`)
    }
    if (brokers.length > 1) this.hit('power cut of several')
    if (brokers.length === this.options.machines.length) this.hit('power cut of all')
    return true
  }

  private crashLater(machine: Machine, step: Extract<Step, { kind: 'crash-at-operation' }>): void {
    const { operations, keep, downMs } = step
    const keepUnsynced = keep === 'all' ? true : keep === 'some' ? 'some' : false
    machine.crashAfter(operations, () => {
      this.hit(step.kind)
      const how = `crashes in a disk operation, ${keep} stays`
      if (keepUnsynced === true) machine.kill({ keepUnsynced }, downMs, how)
      else machine.powerOff({ keepUnsynced }, downMs, how)
    })
  }
}

function told(step: LinkStep): string {
  switch (step.kind) {
    case 'partition': {
      const what = { both: 'is cut off', out: 'is not heard', in: 'hears nothing' }[step.way]
      return `{${step.side.join(' ')}} ${what}`
    }
    case 'cut':
      if (step.way === 'one') return `${step.from} does not reach ${step.to}`
      return `${step.from} and ${step.to} do not reach each other`
    case 'slow-link':
      return `${step.from} to ${step.to} takes ${step.latencyMs} ms, ${step.bytesPerMs} bytes per ms`
    case 'lossy-link': {
      const share = (part: number): string => `${Math.round(part * 100)} %`
      const lost = `loses ${share(step.lost)}, doubles ${share(step.doubled)}`
      return `${step.from} to ${step.to} ${lost}, ${share(step.late)} are up to ${step.lateMs} ms late`
    }
  }
}

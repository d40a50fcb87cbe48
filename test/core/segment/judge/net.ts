// The network: messages are calls that come later, or not at all.
//
//   tell     the cluster port: each by itself, late, lost, overtaken
//   stream   the data port: in order, until the link breaks; what was on its way then is gone, or comes out of turn

import type { NodeId } from '../../../../src/model/ids.ts'
import type { Broker } from './broker.ts'
import type { Process } from './process.ts'
import type { World } from './world.ts'

interface Link {
  /** Grows when it breaks. */
  epoch: number
  /** Nothing comes before what was sent before. */
  lastMs: number
}

export class Net {
  /** Links that carry nothing: "from>to". */
  readonly cut: Set<string> = new Set()
  private readonly world: World
  private readonly links = new Map<string, Link>()

  constructor(world: World) {
    this.world = world
  }

  atBroker(index: number, run: (process: Process) => void): void {
    const broker = this.world.brokers[index]
    if (broker !== undefined) this.arrives(broker, run)
  }

  /** Whoever is stopped takes it when it goes on. */
  private arrives(broker: Broker, run: (process: Process) => void): void {
    const { world } = this
    if (broker.paused) world.later(broker.pausedMs, () => this.arrives(broker, run))
    else if (broker.process !== undefined) run(broker.process)
  }

  tell(from: Process, to: NodeId, what: string, run: (to: Process) => void): void {
    if (!from.up) return
    const { world } = this
    const { chance, profile, calm } = world
    const broker = world.brokerOf(to)
    if (broker === from.broker) return world.later(0, () => this.arrives(broker, run))
    const lost = this.cut.has(`${from.id}>${to}`) || (!calm && chance.float() < profile.lossShare)
    const late = !calm && chance.float() < profile.lateShare
    const line = `${from.broker.name} -> ${broker.name}  ${what}`
    if (world.tellsAll) world.say(`  ${line}${lost ? '   (lost)' : ''}`)
    if (lost) return
    const ms = late ? chance.float() * profile.lateMs : world.netMs()
    world.later(ms, () => this.arrives(broker, run))
  }

  /** False: there is no link. `run` hears whether it came over the link that it was sent over. */
  stream(
    from: Process,
    to: NodeId,
    what: string,
    run: (to: Process, onTime: boolean) => void,
  ): boolean {
    const { world } = this
    const broker = world.brokerOf(to)
    if (!from.up || broker.process === undefined || this.isCut(from.id, to)) return false
    const link = this.link(from.id, to)
    const now = world.clock.monotonic()
    const { epoch } = link
    const receiver = broker.process
    link.lastMs = Math.max(link.lastMs, now + world.netMs())
    if (world.tellsAll) world.say(`  ${from.broker.name} => ${broker.name}  ${what}`)
    world.later(link.lastMs - now, () => {
      if (broker.process !== receiver) return
      if (link.epoch === epoch) {
        this.arrives(broker, (process) => run(process, true))
      } else if (world.chance.below(3) === 0) {
        const ms = world.chance.float() * 50
        world.later(ms, () => this.arrives(broker, (process) => run(process, false)))
      }
    })
    return true
  }

  isCut(a: NodeId, b: NodeId): boolean {
    return this.cut.has(`${a}>${b}`) || this.cut.has(`${b}>${a}`)
  }

  private link(from: NodeId, to: NodeId): Link {
    const key = `${from}>${to}`
    let link = this.links.get(key)
    if (link === undefined) {
      link = { epoch: 0, lastMs: 0 }
      this.links.set(key, link)
    }
    return link
  }

  /** All links of a broker break: it has started, stopped, or was cut off. */
  linksOf(id: NodeId): void {
    for (const other of this.world.brokers) if (other.id !== id) this.breaks(id, other.id)
  }

  breaks(a: NodeId, b: NodeId): void {
    this.link(a, b).epoch++
    this.link(b, a).epoch++
    this.world.brokers.find(({ id }) => id === a)?.process?.linkBroke(b)
    this.world.brokers.find(({ id }) => id === b)?.process?.linkBroke(a)
  }
}

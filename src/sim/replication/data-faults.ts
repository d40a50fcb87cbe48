// Takes the steps that are about a broker's data: a disk without room, a bit that flips, a broker that shall hold nothing.

import type { Machine, Watcher } from '../machine.ts'
import type { Operator } from '../membership/operator.ts'
import type { World } from '../world.ts'
import { segmentOf } from './files.ts'
import type { DataStep } from './step.ts'

/** What a disk without room has left: most of what brokers keep for what must be written (storage/machine.ts). */
const LEFT_BYTES = 200 * 1024

export interface DataFaultsOptions {
  readonly world: World
  readonly machines: readonly Machine[]
  readonly operator: Operator
  readonly watcher: Watcher
  readonly onFlipped: (broker: number) => void
}

export class DataFaults {
  private readonly options: DataFaultsOptions
  private readonly draining = new Set<string>()
  private over = false

  constructor(options: DataFaultsOptions) {
    this.options = options
  }

  /** Whether there was something to strike. */
  take(step: DataStep): boolean {
    if (this.over) return false
    const machine = this.options.machines[step.broker] as Machine
    switch (step.kind) {
      case 'full':
        machine.fill(LEFT_BYTES)
        this.options.world.clock.after(step.forMs, () => machine.setFull(false))
        return true
      case 'flip':
        return this.flip(machine, step)
      case 'flip-log':
        this.options.onFlipped(step.broker)
        machine.rot('wal/', 0, step.byte, step.bit)
        return true
      case 'drain':
        return this.drain(machine, step.forMs)
    }
  }

  calm(): void {
    this.over = true
  }

  private flip(machine: Machine, step: Extract<DataStep, { kind: 'flip' }>): boolean {
    const ended = endedFiles(machine.disk.paths())
    const path = ended[Math.floor(step.file * ended.length)]
    if (path === undefined) return false
    this.options.onFlipped(step.broker)
    machine.rot(path, 0, step.byte, step.bit)
    return true
  }

  /** Metadata gets along without one: another one is not drained meanwhile. */
  private drain(machine: Machine, forMs: number): boolean {
    const { nodeId } = machine
    const { operator, world } = this.options
    if (nodeId === undefined || this.draining.size > 0) return false
    this.draining.add(nodeId)
    void operator.setRole(nodeId, 'draining')
    world.clock.after(forMs, () => {
      void operator.setRole(nodeId, 'member').then(() => this.draining.delete(nodeId))
    })
    return true
  }
}

/** Files of segments behind which others have files, too. */
function endedFiles(paths: readonly string[]): readonly string[] {
  const logs = paths.filter((path) => segmentOf(path) !== undefined)
  const rangeOf = (path: string | undefined): string | undefined =>
    path?.slice(0, path.lastIndexOf('/'))
  return logs.filter((path, i) => rangeOf(logs[i + 1]) === rangeOf(path))
}

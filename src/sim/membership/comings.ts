// Takes the steps that are about brokers as members of the cluster. One that takes a data directory away for ever waits for
// nothing and is left out when the cluster cannot afford it: while another such loss, or a drain, is not made good, or where
// a shard would be left without a majority of its voters.

import type { NodeId } from '../../model/ids.ts'
import type { NodeRole } from '../../model/metadata.ts'
import type { Watcher } from '../machine.ts'
import type { World } from '../world.ts'
import type { Brokers } from './brokers.ts'
import type { Operator } from './operator.ts'
import type { ComingStep } from './step.ts'
import type { Watch } from './watch.ts'

const LOOK_MS = 250

export interface ComingsOptions {
  readonly world: World
  readonly brokers: Brokers
  readonly watch: Watch
  readonly operator: Operator
  readonly watcher: Watcher
  /** Nodes that are gone for ever are said to be removed. */
  readonly tidy: boolean
  /** Every client knows its cluster: one that does not might take another one for it. */
  readonly clientsKnow: () => boolean
}

export class Comings {
  private readonly options: ComingsOptions
  private readonly roles = new Map<NodeId, NodeRole>()
  private readonly lost = new Set<NodeId>()
  /** Removed, and not yet without shards. */
  private leaving = 0

  constructor(options: ComingsOptions) {
    this.options = options
  }

  roleOf(node: NodeId): NodeRole {
    return this.roles.get(node) ?? 'member'
  }

  /** Nothing of what was asked for is still to be done. */
  get done(): boolean {
    const { operator, brokers } = this.options
    return operator.pending === 0 && this.leaving === 0 && brokers.mistaken.length === 0
  }

  /** Whether there was something to do. */
  take(step: ComingStep): boolean {
    const { brokers } = this.options
    if (step.kind === 'join') {
      if (!brokers.isSpare(step.broker)) return false
      brokers.join(step.broker)
      return true
    }
    if (step.kind === 'mass-restart') {
      this.restartAll(step.downMs, step.gently)
      return true
    }
    const node = brokers.nodeOf(step.broker)
    // One that has not been up has no number yet, by which it could be spoken of.
    if (node === undefined || !brokers.machine(step.broker).ready) return false
    if (!brokers.members.includes(step.broker)) return false
    return this.takeOf(step, node)
  }

  private takeOf(
    step: Exclude<ComingStep, { kind: 'join' | 'mass-restart' }>,
    node: NodeId,
  ): boolean {
    const { brokers, operator, clientsKnow } = this.options
    switch (step.kind) {
      case 'drain':
        if (this.roleOf(node) !== 'member' || !this.mayEmpty(node)) return false
        this.setRole(node, 'draining')
        return true
      case 'undrain':
        if (this.roleOf(node) !== 'draining' || operator.pending > 0) return false
        this.setRole(node, 'member')
        return true
      case 'remove':
        if (!this.mayEmpty(node)) return false
        this.setRole(node, 'removed')
        this.leaving++
        this.whenEmpty(node, () => {
          this.leaving--
          if (brokers.nodeOf(step.broker) === node) brokers.replace(step.broker, step.downMs)
        })
        return true
      case 'retire':
        if (!this.mayLose(node) || this.someWait()) return false
        brokers.retire(step.broker)
        this.lose(node)
        return true
      case 'replace':
        if (!this.mayLose(node)) return false
        brokers.replace(step.broker, step.downMs)
        this.lose(node)
        return true
      case 'mistake':
        if (!this.mayLose(node) || !clientsKnow() || this.someWait()) return false
        brokers.foundByMistake(step.broker, step.downMs)
        this.lose(node)
        return true
    }
  }

  /** For a seed, perhaps this one and no other: they would wait for ever, or join what it founds by mistake. */
  private someWait(): boolean {
    const { brokers } = this.options
    return brokers.members.some((one) => !brokers.machine(one).ready)
  }

  restartAll(downMs: readonly number[], gently: boolean): void {
    const { brokers } = this.options
    for (const broker of brokers.members) {
      const machine = brokers.machine(broker)
      const down = downMs[broker] ?? 1
      if (gently && machine.ready) void machine.stop(down)
      else machine.kill({ keepUnsynced: true }, down, 'is killed with all others')
    }
  }

  private setRole(node: NodeId, role: NodeRole): void {
    this.roles.set(node, role)
    void this.options.operator.setRole(node, role)
  }

  private lose(node: NodeId): void {
    this.lost.add(node)
    if (this.options.tidy) this.setRole(node, 'removed')
  }

  private whenEmpty(node: NodeId, run: () => void): void {
    const { world, watch, operator } = this.options
    const gone = operator.roles.get(node) === 'removed' && !watch.holds(node)
    if (gone && watch.settled !== undefined) run()
    else world.clock.after(LOOK_MS, () => this.whenEmpty(node, run))
  }

  /** Every drained or lost broker has been replaced by another, as far as there is one. */
  private get madeGood(): boolean {
    const { watch } = this.options
    if (!this.done || watch.settled === undefined) return false
    return [...this.roles].every(([node, role]) => role === 'member' || !watch.holds(node))
  }

  private mayEmpty(node: NodeId): boolean {
    const { watch } = this.options
    const others = this.membersBeside(node)
    // A group of one grows by two at once.
    const needed = watch.leadsAlone(node) ? 2 : 1
    return this.madeGood && others >= needed && ![...this.lost].some((gone) => watch.holds(gone))
  }

  private mayLose(node: NodeId): boolean {
    const { watch } = this.options
    return (
      this.madeGood &&
      this.membersBeside(node) > 0 &&
      watch.affords(node, (one) => this.lost.has(one))
    )
  }

  private membersBeside(node: NodeId): number {
    const { brokers } = this.options
    return brokers.members.filter((broker) => {
      const other = brokers.nodeOf(broker)
      return other !== undefined && other !== node && this.roleOf(other) === 'member'
    }).length
  }
}

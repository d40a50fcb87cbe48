// What goes wrong on a simulated disk while the process lives: planned, for a test of one failure, or by rates, for a
// simulation of many. The seed decides by rates; a plan decides for itself, and goes first.
//
// An operation that fails may have done a part of its work: see DiskWork.

import { assert } from '../../base/assert.ts'
import type { Prng } from '../../base/prng.ts'
import { DiskError, type DiskFault } from '../../ports/disk.ts'

export type OperationKind =
  | 'open'
  | 'read'
  | 'write'
  | 'sync'
  | 'size'
  | 'truncate'
  | 'allocate'
  | 'close'
  | 'makeDir'
  | 'list'
  | 'rename'
  | 'remove'
  | 'syncDir'
  | 'space'
  | 'lock'

export interface Operation {
  /** The first on a disk is 1. */
  readonly number: number
  readonly kind: OperationKind
  readonly path: string
  /** Of a rename. */
  readonly to?: string | undefined
  /** Of a read or write. */
  readonly position?: number | undefined
  readonly bytes?: number | undefined
}

export interface FaultPlan {
  readonly operation: OperationKind
  /** Of paths that begin so; of all when absent. */
  readonly path?: string
  readonly fault: DiskFault
  /** So many are spared first (0), and so many fail then (1). */
  readonly spared?: number
  readonly times?: number
}

/** Of each kind the share that fails with `io`; and of all operations the share `slow` that takes up to `slowMs` more. */
export type FaultRates = { readonly [kind in OperationKind]?: number } & {
  readonly slow?: number
  readonly slowMs?: number
}

export interface Misfortune {
  readonly error: DiskError | undefined
  readonly slowMs: number
}

const REASONS: Readonly<Record<DiskFault, string>> = {
  'not-found': 'it does not exist',
  exists: 'it exists already',
  full: 'the disk is full',
  'read-only': 'the file system is read-only',
  denied: 'permission denied',
  locked: 'it is held by another process',
  io: 'the device reports an error',
}

export function diskFault(fault: DiskFault, doing: string, path: string): DiskError {
  return new DiskError(fault, path, `cannot ${doing} ${path}: ${REASONS[fault]}`)
}

interface Plan extends FaultPlan {
  seen: number
}

export class Faults {
  rates: FaultRates
  private readonly chance: Prng
  private plans: readonly Plan[] = []

  constructor(rates: FaultRates, chance: Prng) {
    this.rates = rates
    this.chance = chance
  }

  /** The answer takes the plan back. */
  plan(wanted: FaultPlan): () => void {
    const { operation, fault } = wanted
    const syncs = operation === 'sync' || operation === 'syncDir'
    assert(!syncs || fault !== 'full', 'the port tells of no sync that there was no room for it')
    const plan = { ...wanted, seen: 0 }
    this.plans = [...this.plans, plan]
    return () => {
      this.plans = this.plans.filter((other) => other !== plan)
    }
  }

  decide({ kind, path }: Operation): Misfortune {
    const { slow = 0, slowMs = 0 } = this.rates
    const fault =
      this.planned(kind, path) ?? (this.happens(this.rates[kind] ?? 0) ? 'io' : undefined)
    return {
      error: fault === undefined ? undefined : diskFault(fault, kind, path),
      slowMs: this.happens(slow) ? this.chance.float() * slowMs : 0,
    }
  }

  private planned(kind: OperationKind, path: string): DiskFault | undefined {
    for (const plan of this.plans) {
      if (plan.operation !== kind || !path.startsWith(plan.path ?? '')) continue
      const { spared = 0, times = 1 } = plan
      plan.seen++
      if (plan.seen > spared && plan.seen <= spared + times) return plan.fault
    }
    return undefined
  }

  private happens(share: number): boolean {
    return share > 0 && this.chance.float() < share
  }
}

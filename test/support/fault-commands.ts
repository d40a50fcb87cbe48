// What a test tells the broker of faulty-broker-main.ts: which of io/faults' faults its disk has from now on.

import type { FaultyDisk } from '../../src/io/faults/faulty-disk.ts'
import type { DiskFault } from '../../src/ports/disk.ts'

type Faults = FaultyDisk['faults']

export type FaultCommand =
  /** No failure is planned any more. */
  | { readonly kind: 'well' }
  | { readonly kind: 'slow-syncs'; readonly ms: number }
  | { readonly kind: 'full'; readonly full: boolean }
  | { readonly kind: 'read-only'; readonly readOnly: boolean }
  | {
      readonly kind: 'fail'
      readonly operation: Parameters<Faults['failNext']>[0]
      readonly fault?: DiskFault
      readonly times?: number
      /** Of the path in the data directory. */
      readonly prefix?: string
    }

export function applyFault(faults: Faults, command: FaultCommand): void {
  switch (command.kind) {
    case 'well':
      return faults.failNoMore()
    case 'slow-syncs':
      return faults.slowSyncs(command.ms)
    case 'full':
      return faults.setFull(command.full)
    case 'read-only':
      return faults.setReadOnly(command.readOnly)
    case 'fail':
      return faults.failNext(
        command.operation,
        command.fault ?? 'io',
        command.times ?? 1,
        command.prefix ?? '',
      )
  }
}

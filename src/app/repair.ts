// Repair of a data directory on this machine: what it has lost, in words that are shown, and the way on without it.

import { systemClock } from '../io/clock/system-clock.ts'
import { fileDisk } from '../io/disk/file-disk.ts'
import { systemRandom } from '../io/random/system-random.ts'
import type { Log } from '../ports/log.ts'
import { repairDataDir } from '../server/repair.ts'
import type { ResolvedConfig } from './config/key.ts'
import { settingsOf } from './server.ts'

export interface ReportedLoss {
  /** Undefined: it is not one segment's. */
  readonly topic: string | undefined
  readonly topicId: string | undefined
  readonly range: number | undefined
  readonly segment: number | undefined
  readonly file: string
  readonly position: number | undefined
  readonly fault: string
  /** Undefined: nothing tells which. */
  readonly entries: { readonly first: number; readonly last: number } | undefined
  readonly offsets: readonly {
    readonly partition: number
    readonly first: number
    readonly last: number
  }[]
  readonly records: number
}

export interface RepairReport {
  readonly losses: readonly ReportedLoss[]
  /** Segment files that are damaged, or marked as such, although all of their entries are whole. */
  readonly whole: readonly string[]
  /** Files that are wrong and cost nothing. */
  readonly derived: readonly string[]
}

/** What a start would log of the damage is in the report, in better words; what fails is thrown. */
const QUIET: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => QUIET,
}

/**
 * `accept` is told what is wrong before anything is changed and resolves with whether to go on. Resolves with whether
 * something was changed. Rejects with DATA_DIR_IN_USE, DATA_DIR_UNUSABLE, DATA_DIR_MISMATCH, and with DAMAGED when the
 * metadata is damaged, of which there is no second copy.
 */
export function repairLocal(
  config: ResolvedConfig,
  accept: (report: RepairReport) => Promise<boolean>,
): Promise<boolean> {
  return repairDataDir({
    ports: {
      disk: fileDisk(config.dataDir),
      clock: systemClock({ keepAlive: true }),
      random: systemRandom(),
      log: QUIET,
    },
    settings: settingsOf(config),
    accept: ({ losses, notices, findings }) => {
      const whole = findings
        .filter((finding) => finding.losses.length === 0)
        .map(({ base }) => `${base}.log`)
      return accept({ losses: losses.map(reported), whole, derived: notices })
    },
  })
}

type Loss = Parameters<Parameters<typeof repairDataDir>[0]['accept']>[0]['losses'][number]

function reported({ facts, file, position, what, entries, offsets, records }: Loss): ReportedLoss {
  return {
    topic: facts?.topicName,
    topicId: facts?.key.topicId,
    range: facts?.key.range,
    segment: facts?.key.segment,
    file,
    position,
    fault: what,
    entries: entries === undefined ? undefined : { first: entries.first, last: entries.end - 1 },
    offsets: offsets.map(({ partition, from, end }) => ({ partition, first: from, last: end - 1 })),
    records,
  }
}

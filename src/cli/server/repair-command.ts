// `eastguard repair`: what a data directory has lost, exactly; and, once that is accepted, the way on without it.

import type { Command } from 'commander'
import { type RepairReport, type ReportedLoss, repairLocal } from '../../app/repair.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Json, Output } from '../output.ts'
import { configFromFlags } from './config-flags.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Partitions named in the table; --json has all. */
const PARTITIONS_SHOWN = 8

export function addRepairCommand(program: Command, output: () => Output, env: Env): void {
  program
    .command('repair')
    .description('say what a data directory has lost; with --accept-loss go on without it')
    .argument('[data_dir]', 'instead of the one of the configuration')
    .option('-c, --config <path>', 'configuration file (eastguard.yaml in the working directory)')
    .option('--accept-loss', 'say it, and then make the rest serveable')
    .action(
      async (
        dataDir: string | undefined,
        options: { readonly config?: string; readonly acceptLoss?: true },
      ) => {
        const flags = dataDir === undefined ? options : { ...options, dataDir }
        const { config } = configFromFlags(flags, env)
        await repair(output(), config, options.acceptLoss === true)
      },
    )
}

async function repair(
  out: Output,
  config: Parameters<typeof repairLocal>[0],
  acceptLoss: boolean,
): Promise<void> {
  let report: RepairReport | undefined
  const repaired = await repairLocal(config, async (found) => {
    report = found
    if (!out.json) await show(out, config.dataDir, found)
    return acceptLoss && (found.losses.length > 0 || found.whole.length > 0)
  })
  if (report === undefined) return
  if (out.json) await out.document(documentOf(config.dataDir, report, repaired))
  if (repaired) {
    if (!out.json) await out.line('repaired: the next start of the broker serves the rest')
    return
  }
  const losses = report.losses.length
  const whole = report.whole.length
  if (losses === 0 && whole === 0) return
  const what =
    losses === 0 ? `nothing is lost, but ${whole} segments are to be put right` : lossesOf(losses)
  throw new EastGuardError('DAMAGED', `${what}, and nothing was changed`, {
    hint: 'copy the directory away, and run again with --accept-loss to go on without what is lost',
    detail: { losses, whole },
  })
}

function lossesOf(count: number): string {
  return count === 1 ? 'there is 1 loss to accept' : `there are ${count} losses to accept`
}

async function show(out: Output, dataDir: string, report: RepairReport): Promise<void> {
  const { losses, whole, derived } = report
  if (losses.length === 0) {
    await out.line(`${dataDir}: nothing is lost`)
  } else {
    await out.line(`${dataDir}: this is lost`)
    await out.table(
      ['topic', 'range', 'segment', 'byte', 'entries', 'partition: offsets', 'records'],
      losses.map(rowOf),
    )
    for (const { file, position, fault } of losses) {
      await out.line(`${file}${position === undefined ? '' : `, byte ${position}`}: ${fault}`)
    }
    const records = losses.reduce((sum, loss) => sum + loss.records, 0)
    const unknown = losses.filter(({ entries }) => entries === undefined).length
    await out.line(
      unknown === 0
        ? `${records} records in all`
        : `${records} records in all, and what nothing tells of (?)`,
    )
  }
  if (whole.length > 0) {
    await out.line('damaged, or marked so, but every entry is whole: --accept-loss puts it right')
    for (const file of whole) await out.line(`  ${file}`)
  }
  if (derived.length > 0) {
    await out.line(
      'wrong as well, and nothing is lost by it: the broker makes it anew, or removes it',
    )
    for (const file of derived) await out.line(`  ${file}`)
  }
}

function rowOf(loss: ReportedLoss): readonly (string | number)[] {
  const { topic, range, segment, position, entries, offsets, records } = loss
  const some = offsets.slice(0, PARTITIONS_SHOWN).map(({ partition, first, last }) => {
    return `${partition}: ${first === last ? first : `${first}-${last}`}`
  })
  if (offsets.length > some.length) some.push(`and ${offsets.length - some.length} partitions more`)
  return [
    topic ?? '?',
    range ?? '?',
    segment ?? '?',
    position ?? '-',
    entries === undefined ? '?' : `${entries.first}-${entries.last}`,
    some.length === 0 ? '?' : some.join('\n'),
    entries === undefined ? '?' : records,
  ]
}

function documentOf(dataDir: string, report: RepairReport, repaired: boolean): Json {
  return {
    data_dir: dataDir,
    losses: report.losses.map(
      ({ topic, topicId, range, segment, file, position, fault, entries, offsets, records }) => ({
        topic: topic ?? null,
        topic_id: topicId ?? null,
        range: range ?? null,
        segment: segment ?? null,
        file,
        position: position ?? null,
        fault,
        first_entry: entries?.first ?? null,
        last_entry: entries?.last ?? null,
        offsets: offsets.map(({ partition, first, last }) => ({
          partition,
          first_offset: first,
          last_offset: last,
        })),
        records,
      }),
    ),
    whole: [...report.whole],
    derived: [...report.derived],
    repaired,
  }
}

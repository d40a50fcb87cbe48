// `eastguard inspect`: what a segment or WAL file holds, and whether every byte of it checks.

import type { Command } from 'commander'
import { inspectFile } from '../../app/inspect.ts'
import { EastGuardError } from '../../base/errors.ts'
import { type Output, plural, showBytesCount } from '../output.ts'

type Inspected = Awaited<ReturnType<typeof inspectFile>>
type Log = Extract<Inspected, { kind: 'log' }>['log']
type Segment = Extract<Inspected, { kind: 'segment' }>['segment']

const BLOCKS_SHOWN = 20

export function addInspectCommand(program: Command, output: () => Output): void {
  program
    .command('inspect')
    .description('check a segment or WAL file and show what it holds')
    .argument('<file>')
    .option('--digest', 'SHA-256 over the entries: equal on replicas that hold the same')
    .action(async (path: string, options: { readonly digest?: true }) => {
      const found = await inspectFile(path, options.digest === true)
      if (found.kind === 'unreadable') {
        throw new EastGuardError('DAMAGED', `${path}: ${found.fault}`, {
          hint: 'is it one of ours? Segment files (.log) lie under topics/, log files (.wal) under wal/ and journal/',
        })
      }
      if (found.kind === 'log') {
        await showLog(output(), path, found.log)
        return
      }
      await showSegment(output(), path, found.segment)
      if (found.segment.fault !== undefined) throw damaged(path, found.segment.fault)
    })
}

function damaged(path: string, fault: string): EastGuardError {
  return new EastGuardError('DAMAGED', `${path}: ${fault}`, {
    hint: 'a segment that is still written may end in an unfinished block; anything else is damage',
  })
}

async function showSegment(out: Output, path: string, segment: Segment): Promise<void> {
  if (out.json) {
    await out.document({
      file: path,
      kind: 'segment',
      topic_id: segment.topicId,
      range: segment.range,
      segment: segment.segment,
      file_bytes: segment.fileBytes,
      blocks: segment.blocks.length,
      entries: segment.entries,
      records: segment.records,
      entry_bytes: segment.entryBytes,
      valid: segment.fault === undefined,
      fault: segment.fault ?? null,
      digest: segment.digest ?? null,
    })
    return
  }
  await out.line(`segment ${segment.segment} of range ${segment.range}, topic ${segment.topicId}`)
  await out.line(
    `${plural(segment.entries, 'entry', 'entries')}, ${plural(segment.records, 'record')}, ${showBytesCount(segment.entryBytes)} in ${plural(segment.blocks.length, 'block')}; file ${showBytesCount(segment.fileBytes)}`,
  )
  if (segment.digest !== undefined) await out.line(`digest sha256 ${segment.digest}`)
  const rows = segment.blocks
    .slice(0, BLOCKS_SHOWN)
    .map((b) => [b.position, b.bytes, b.firstEntry, b.entries, b.partitions])
  if (rows.length > 0) {
    await out.table(['position', 'bytes', 'first entry', 'entries', 'partitions'], rows)
  }
  if (segment.blocks.length > BLOCKS_SHOWN) {
    await out.line(`and ${plural(segment.blocks.length - BLOCKS_SHOWN, 'block')} more`)
  }
}

async function showLog(out: Output, path: string, log: Log): Promise<void> {
  const records = log.runs.reduce((sum, run) => sum + run.endLsn - run.firstLsn, 0)
  if (out.json) {
    await out.document({
      file: path,
      kind: 'log',
      node_id: log.nodeId,
      boot_count: log.bootCount,
      generation: log.generation,
      sequence: log.sequence,
      file_bytes: log.fileBytes,
      groups: log.groups,
      records,
      runs: log.runs.map(({ position, firstLsn, endLsn }) => ({
        position,
        first_lsn: firstLsn,
        end_lsn: endLsn,
      })),
    })
    return
  }
  await out.line(
    `log file ${log.sequence}, generation ${log.generation}, of node ${log.nodeId}, boot ${log.bootCount}`,
  )
  await out.line(
    `${plural(records, 'record')} in ${plural(log.groups, 'group')}; file ${showBytesCount(log.fileBytes)}`,
  )
  await out.table(
    ['position', 'first LSN', 'end LSN'],
    log.runs.map(({ position, firstLsn, endLsn }) => [position, firstLsn, endLsn]),
  )
  if (log.runs.length > 1) {
    await out.line(
      'between these runs something cannot be read: the torn end of the last group, or damage. The broker decides with all files at hand.',
    )
  }
}

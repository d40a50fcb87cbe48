// A log of opaque records, for the metadata journal: the group log with payloads as they come.
//
//   const found = await recoverLog(disk, 'journal')     nothing is written yet
//   for await (const chunk of found.replay()) ...       make what it held durable elsewhere, then
//   const log = await beginRecordLog(found, options)    a new generation; the old files are free
//
// What was recovered is readable but perhaps not durable (a killed process leaves unsynced pages behind), so that
// the order of these three is the point: rewrite, sync, then begin.

import { EastGuardError } from '../../base/errors.ts'
import { directoryOf } from '../checked-file.ts'
import { type LogOptions, TEMPORARY_NAME } from './files.ts'
import { GroupLog, type GroupLogHooks } from './group-log.ts'
import type { RecoveredLog } from './recover.ts'
import type { RecordLog } from './types.ts'

/** Begins a new generation behind what was recovered, with a first file that is on disk. */
export async function beginGroupLog<Target, Item>(
  found: RecoveredLog,
  options: LogOptions,
  hooks: GroupLogHooks<Target, Item>,
): Promise<GroupLog<Target, Item>> {
  const { disk, dir } = options
  await disk.makeDir(dir)
  // No file is more durable than its name and its directory's: the process that made them may have been killed before it
  // had synced them.
  await disk.syncDir(directoryOf(dir))
  await disk.syncDir(dir)
  await disk.remove(`${dir}/${TEMPORARY_NAME}`)
  const generation = found.generation + 1
  const log = new GroupLog<Target, Item>(
    { ...options, generation },
    hooks,
    found.endLsn,
    found.used,
    found.spares,
  )
  if (!(await log.begin())) {
    await log.close()
    throw new EastGuardError('STORAGE_FULL', `there is no space for the first log file in ${dir}`)
  }
  return log
}

export async function beginRecordLog(found: RecoveredLog, options: LogOptions): Promise<RecordLog> {
  const log = await beginGroupLog<undefined, Uint8Array>(found, options, {
    headBytes: () => 0,
    putHead: () => {},
    tail: (_kind, payload) => payload,
    gathered: () => {},
    synced: () => {},
  })
  return {
    append: (kind, payload) => log.append(kind, undefined, payload),
    commit: () => log.commit(),
    sync() {
      log.commit()
      return log.whenSynced(log.nextLsn - 1)
    },
    releaseBelow: (lsn) => log.releaseBelow(lsn),
    get nextLsn() {
      return log.nextLsn
    },
    get filesInUse() {
      return log.filesInUse
    },
    hasRoom: (payloadBytes) => log.hasRoom(payloadBytes),
    get blocked() {
      return log.blocked
    },
    close: () => log.close(),
  }
}

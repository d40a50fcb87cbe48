// Opening a log directory: which files are live, what they hold, and what is lost. Nothing is written here: a crash
// while recovering leaves everything as it was, so that recovering again finds the same.
//
//   list names -> headers -> newest generation -> scan each file -> accept (accept.ts) -> replay
//
// One file is in memory at a time, whole: scanning needs to look ahead, and a start has memory to spare. The thread is lent to
// others every megabyte or so: a broker that recovers its records has shards to lead and to vote in already.

import { getU32 } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import { type Disk, DiskError } from '../../ports/disk.ts'
import { readWhole } from '../checked-file.ts'
import { type Accepted, type AcceptedRun, accept } from './accept.ts'
import type { IdleFile } from './files.ts'
import {
  decodeHeader,
  type FileHeader,
  fileName,
  LOG_FORMAT_VERSION,
  RECORDS_AT,
  sequenceOf,
} from './header.ts'
import { FRAME_BYTES, frameAt, frameKind, frameLsn, KIND_GROUP } from './record.ts'
import { type FileScan, type Run, scanSteps } from './scan.ts'
import type { LogIdentity, LogRecord, LogRecovery, LostRecord, LostSpan } from './types.ts'

const CHUNK_BYTES = 1024 * 1024

/** Resolves when what is ready now has had its turn. */
type Turn = () => Promise<void>

interface FoundFile extends IdleFile {
  /** Undefined: neither header page is good. */
  readonly header: FileHeader | undefined
}

export class RecoveredLog implements LogRecovery {
  private readonly disk: Disk
  private readonly dir: string
  private readonly accepted: Accepted
  private readonly turn: Turn
  readonly identity: LogIdentity | undefined
  readonly generation: number
  readonly firstLsn: number
  /** Files that hold, or held, records; free when the next generation has begun. */
  readonly used: readonly IdleFile[]
  readonly spares: readonly IdleFile[]

  constructor({ disk, dir, turn }: Place, files: Classified, accepted: Accepted, firstLsn: number) {
    this.disk = disk
    this.dir = dir
    this.turn = turn
    this.accepted = accepted
    this.identity = files.live.at(-1)?.header.identity
    this.generation = files.generation
    this.firstLsn = firstLsn
    this.used = files.used
    this.spares = files.spares
  }

  get lost(): readonly LostSpan[] {
    return this.accepted.lost
  }
  get endLsn(): number {
    return this.accepted.endLsn
  }

  async *replay(): AsyncIterable<readonly LogRecord[]> {
    let bytes: Uint8Array = new Uint8Array(0)
    let loaded = -1
    for (const accepted of this.accepted.runs) {
      const { sequence } = accepted.run
      if (sequence !== loaded)
        bytes = await readWhole(this.disk, `${this.dir}/${fileName(sequence)}`)
      loaded = sequence
      for (const chunk of recordsOf(bytes, accepted)) {
        yield chunk
        await this.turn()
      }
    }
  }

  async *lostRecords(): AsyncIterable<LostRecord> {
    for (const { fromLsn, endLsn, place } of this.lost) {
      if (place === undefined || endLsn !== fromLsn + 1) continue
      const bytes = await readWhole(this.disk, `${this.dir}/${fileName(place.sequence)}`)
      const { position } = place
      if (position + FRAME_BYTES > bytes.length) continue
      // With nothing valid behind it, only a frame that names itself and its length can be it.
      if (place.endPosition === undefined && frameLsn(bytes, position) !== fromLsn) continue
      const end = place.endPosition ?? position + FRAME_BYTES + getU32(bytes, position + 4)
      yield { lsn: fromLsn, payload: bytes.subarray(position + FRAME_BYTES, end) }
    }
  }
}

function* recordsOf(bytes: Uint8Array, accepted: AcceptedRun): Iterable<readonly LogRecord[]> {
  const salt = decodeHeader(bytes)?.salt ?? 0
  let chunk: LogRecord[] = []
  let from = accepted.run.position
  for (let at = from; at < accepted.run.endPosition; ) {
    const size = frameAt(bytes, at, salt)
    if (size === 0) throw new EastGuardError('DAMAGED', `a log record changed while it was read`)
    const kind = frameKind(bytes, at)
    const lsn = frameLsn(bytes, at)
    if (kind !== KIND_GROUP && lsn >= accepted.firstLsn && lsn < accepted.endLsn) {
      chunk.push({ lsn, kind, payload: bytes.subarray(at + FRAME_BYTES, at + size) })
    }
    at += size
    if (at - from >= CHUNK_BYTES) {
      yield chunk
      chunk = []
      from = at
    }
  }
  if (chunk.length > 0) yield chunk
}

interface Place {
  readonly disk: Disk
  readonly dir: string
  readonly turn: Turn
}

/** `turn`: for whoever has others to answer meanwhile. */
export async function recoverLog(
  disk: Disk,
  dir: string,
  turn: Turn = async () => {},
): Promise<RecoveredLog> {
  const files = classify(await findFiles(disk, dir))
  const runs: Run[] = []
  let syncedEnd = 1
  let floorLsn = 1
  for (const { sequence, header } of files.live) {
    const scan = await scanned(await readWhole(disk, `${dir}/${fileName(sequence)}`), header, turn)
    runs.push(...scan.runs)
    syncedEnd = Math.max(syncedEnd, scan.syncedEnd, header.firstLsn)
    floorLsn = Math.max(floorLsn, scan.floorLsn, header.floorLsn)
  }
  const unreadable = [...files.unreadable, ...cutOff(files.live.at(-1))]
  const accepted = accept({ runs, floorLsn, syncedEnd: Math.max(syncedEnd, floorLsn), unreadable })
  return new RecoveredLog({ disk, dir, turn }, files, accepted, floorLsn)
}

async function scanned(bytes: Uint8Array, header: FileHeader, turn: Turn): Promise<FileScan> {
  const steps = scanSteps(bytes, header)
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    await turn()
  }
}

/** A file is as long as it will be before it is used. Behind what is missing of an older one, the next one's records tell. */
function cutOff(last: LiveFile | undefined): readonly string[] {
  if (last === undefined || last.bytes >= last.header.fileBytes) return []
  return [
    `log file ${last.sequence} was cut off: ${last.bytes} of ${last.header.fileBytes} bytes are left`,
  ]
}

/** Whose log is in `dir`, and of which start; undefined when there is none. Reads headers only. */
export async function readLogIdentity(disk: Disk, dir: string): Promise<LogIdentity | undefined> {
  return classify(await findFiles(disk, dir)).live.at(-1)?.header.identity
}

async function findFiles(disk: Disk, dir: string): Promise<readonly FoundFile[]> {
  const files: FoundFile[] = []
  for (const name of await listOrNothing(disk, dir)) {
    const sequence = sequenceOf(name)
    if (sequence === undefined) continue
    const file = await disk.open(`${dir}/${name}`, { mode: 'read' })
    try {
      const pages = new Uint8Array(RECORDS_AT)
      const got = await file.read(pages, 0)
      const header = decodeHeader(pages.subarray(0, got))
      if (header !== undefined && header.version !== LOG_FORMAT_VERSION) {
        const known = `this version knows ${LOG_FORMAT_VERSION}`
        throw new EastGuardError(
          'DATA_DIR_NEWER',
          `${dir}/${name} has format ${header.version}, ${known}`,
        )
      }
      files.push({ sequence, bytes: await file.size(), header })
    } finally {
      await file.close()
    }
  }
  return files.sort((a, b) => a.sequence - b.sequence)
}

async function listOrNothing(disk: Disk, dir: string): Promise<readonly string[]> {
  try {
    return (await disk.list(dir)).map((entry) => entry.name)
  } catch (error) {
    if (error instanceof DiskError && error.fault === 'not-found') return []
    throw error
  }
}

interface LiveFile extends IdleFile {
  readonly header: FileHeader
}

interface Classified {
  readonly live: readonly LiveFile[]
  readonly used: readonly IdleFile[]
  readonly spares: readonly IdleFile[]
  readonly generation: number
  /** What is wrong behind the last live file. */
  readonly unreadable: readonly string[]
}

function classify(files: readonly FoundFile[]): Classified {
  const named = files.filter((file): file is LiveFile => file.header?.sequence === file.sequence)
  const generation = Math.max(0, ...named.map((file) => file.header.generation))
  const live = named.filter((file) => file.header.generation === generation)
  const spares = files.filter(
    (file) => file.header !== undefined && file.header.sequence !== file.sequence,
  )
  const used = files.filter((file) => !spares.includes(file))
  const last = live.at(-1)?.sequence ?? 0
  const unreadable: string[] = []
  for (const file of files) {
    if (file.header === undefined && file.sequence > last) {
      unreadable.push(`log file ${file.sequence} has no readable header`)
    }
  }
  // Sequences on disk have no gap above the oldest live file, whatever happens: one that is missing was taken away.
  let expected = last + 1
  for (const file of files) {
    if (live.length === 0 || file.sequence <= last) continue
    if (file.sequence > expected) {
      unreadable.push(`log files ${expected} to ${file.sequence - 1} are missing`)
    }
    expected = file.sequence + 1
  }
  return { live, used, spares, generation, unreadable }
}

// The header of a log file: two pages with the same bytes, written one after the other, each synced before the next.
// So at every moment one of them is whole, and a file with two bad pages was damaged, not torn.
//
//   page 1 is written first, then page 0         crash between: page 1 is new, page 0 old; the newer counts
//
//   0  8B   magic
//   8  u32  CRC32C over byte 12 to 100
//  12  u32  format version
//  16  16B  node id
//  32  u64  boot count             of the start of the broker that wrote it
//  40  u64  generation             a restart begins a new one; 0: a spare that was never used
//  48  u64  sequence               grows from file to file; also the file's name
//  56  u32  salt                   random, seeds every CRC in this file
//  60  u64  first LSN
//  68  u64  floor                  as in group headers (record.ts)
//  76  u64  file length            so that a file which was cut off is known; 0: written before this was kept
//  84  16B  reserved, 0
// 100
//
// A file is live when it bears its own sequence as its name and the newest generation. A file whose header tells
// another sequence waits to be reused under its present name: nothing behind its header counts.

import { equalBytes, getI64, getU32, putI64, putU32, utf8 } from '../../base/bytes.ts'
import { crc32c } from '../../base/checksum.ts'
import type { DiskFile } from '../../ports/disk.ts'
import type { LogIdentity } from './types.ts'

export const HEADER_PAGE_BYTES = 4096
/** Records begin here. */
export const RECORDS_AT: number = 2 * HEADER_PAGE_BYTES
export const LOG_FORMAT_VERSION = 1

const MAGIC = utf8('EGLOG\r\n\u001a')
const USED_BYTES = 100

export interface FileHeader {
  readonly version: number
  readonly identity: LogIdentity
  readonly generation: number
  readonly sequence: number
  readonly salt: number
  readonly firstLsn: number
  readonly floorLsn: number
  /** The file was this long, durably, when the header was written; 0 is not known. */
  readonly fileBytes: number
}

function encodeHeader(header: FileHeader): Uint8Array {
  const page = new Uint8Array(HEADER_PAGE_BYTES)
  page.set(MAGIC, 0)
  putU32(page, 12, header.version)
  page.set(header.identity.nodeIdBytes, 16)
  putI64(page, 32, header.identity.bootCount)
  putI64(page, 40, header.generation)
  putI64(page, 48, header.sequence)
  putU32(page, 56, header.salt)
  putI64(page, 60, header.firstLsn)
  putI64(page, 68, header.floorLsn)
  putI64(page, 76, header.fileBytes)
  putU32(page, 8, crc32c(page.subarray(12, USED_BYTES)))
  return page
}

function decodePage(page: Uint8Array): FileHeader | undefined {
  if (page.length < USED_BYTES || !equalBytes(page.subarray(0, MAGIC.length), MAGIC)) {
    return undefined
  }
  if (getU32(page, 8) !== crc32c(page.subarray(12, USED_BYTES))) return undefined
  return {
    version: getU32(page, 12),
    identity: { nodeIdBytes: page.slice(16, 32), bootCount: getI64(page, 32) },
    generation: getI64(page, 40),
    sequence: getI64(page, 48),
    salt: getU32(page, 56),
    firstLsn: getI64(page, 60),
    floorLsn: getI64(page, 68),
    fileBytes: getI64(page, 76),
  }
}

/** The header in the first RECORDS_AT bytes of a file; undefined when neither page is good. */
export function decodeHeader(bytes: Uint8Array): FileHeader | undefined {
  const first = decodePage(bytes.subarray(0, HEADER_PAGE_BYTES))
  const second = decodePage(bytes.subarray(HEADER_PAGE_BYTES, RECORDS_AT))
  if (first === undefined || second === undefined) return first ?? second
  const secondIsNewer =
    second.generation > first.generation ||
    (second.generation === first.generation && second.sequence > first.sequence)
  return secondIsNewer ? second : first
}

/** `file` was opened durable: each page is on disk before the next is touched. */
export async function writeHeader(file: DiskFile, header: FileHeader): Promise<void> {
  const page = encodeHeader(header)
  await file.write([page], HEADER_PAGE_BYTES)
  await file.write([page], 0)
}

const NAME = /^(\d{20})\.wal$/

export function fileName(sequence: number): string {
  return `${String(sequence).padStart(20, '0')}.wal`
}

/** Undefined for what is not a log file's name. */
export function sequenceOf(name: string): number | undefined {
  const match = NAME.exec(name)
  return match === null ? undefined : Number(match[1])
}

// Payload that imitates the write-ahead log: group headers which claim that far more was synced than ever was. If recovery,
// looking for the next good group behind a torn one, believed one of them, a legal power cut would be taken for damage. What
// keeps it from that is the salt of each file, so salts that were used before must not help.

import { WAL_DIR } from '../../storage/log-store.ts'
import { decodeHeader, HEADER_PAGE_BYTES, RECORDS_AT } from '../../storage/wal/header.ts'
import { GROUP_BYTES, putGroup } from '../../storage/wal/record.ts'
import type { SimDisk } from '../ports/disk.ts'

/** Two pages, so that a torn write may lose what stands before and keep some of them. */
const FORGED_BYTES = 2 * HEADER_PAGE_BYTES
const NEVER_REACHED = 2 ** 40

/** Undefined while no salt is known. */
export function forgery(salts: readonly number[]): Uint8Array | undefined {
  if (salts.length === 0) return undefined
  const header = { group: 1, syncedLsn: NEVER_REACHED, floorLsn: 1, records: 0 }
  const bytes = new Uint8Array(FORGED_BYTES)
  for (let at = 0, i = 0; at + GROUP_BYTES <= bytes.length; at += GROUP_BYTES, i++) {
    putGroup(bytes, at, NEVER_REACHED, header, salts[i % salts.length] as number)
  }
  return bytes
}

/** The salts of the log files on a disk. */
export function saltsOn(disk: SimDisk): readonly number[] {
  const salts: number[] = []
  for (const path of disk.paths()) {
    if (!path.startsWith(`${WAL_DIR}/`)) continue
    const header = decodeHeader(disk.bytesOf(path).subarray(0, RECORDS_AT))
    if (header !== undefined && header.salt !== 0) salts.push(header.salt)
  }
  return salts
}

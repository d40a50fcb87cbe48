// A small file that is either whole or not there: written beside its place, synced, renamed over it, and the
// directory synced. For range states, snapshots and lists: whatever is rewritten as one piece.
//
//   0  u32  magic
//   4  u32  CRC32C over byte 8 to the end
//   8  u32  format version
//  12  u32  content length
//  16  content

import { getU32, putU32 } from '../base/bytes.ts'
import { crc32c } from '../base/checksum.ts'
import { EastGuardError } from '../base/errors.ts'
import { type Disk, DiskError, type DiskFile } from '../ports/disk.ts'

const MAGIC = 0x45474346 // EGCF
const VERSION = 1
const HEADER_BYTES = 16
const TEMPORARY = '.tmp'

/** The directory of `path` must exist. Durable when it resolves; a crash leaves the old content or the new. */
export async function writeChecked(disk: Disk, path: string, content: Uint8Array): Promise<void> {
  const header = new Uint8Array(HEADER_BYTES)
  putU32(header, 0, MAGIC)
  putU32(header, 8, VERSION)
  putU32(header, 12, content.length)
  putU32(header, 4, crc32c(content, crc32c(header.subarray(8))))
  await replaceFile(disk, path, [header, content])
}

/** `writeChecked` for a file of another format. */
export async function replaceFile(
  disk: Disk,
  path: string,
  content: readonly Uint8Array[],
): Promise<void> {
  const temporary = path + TEMPORARY
  const file = await openNew(disk, temporary)
  try {
    await file.write(content, 0)
    await file.sync()
  } catch (error) {
    await file.close()
    // Of a full disk it may have what was left.
    await disk.remove(temporary).catch(() => undefined)
    throw error
  }
  await Promise.all([file.close(), disk.rename(temporary, path)])
  await disk.syncDir(directoryOf(path))
}

async function openNew(disk: Disk, path: string): Promise<DiskFile> {
  const options = { mode: 'create-new' } as const
  try {
    return await disk.open(path, options)
  } catch (error) {
    if (!(error instanceof DiskError) || error.fault !== 'exists') throw error
    // A leftover of a crash, which may be longer than what is written now.
    await disk.remove(path)
    return await disk.open(path, options)
  }
}

/** Undefined when there is no such file. Throws DAMAGED when it is not what was written. */
export async function readChecked(disk: Disk, path: string): Promise<Uint8Array | undefined> {
  const bytes = await readIfThere(disk, path)
  if (bytes === undefined) return undefined
  if (bytes.length < HEADER_BYTES || getU32(bytes, 0) !== MAGIC) {
    throw damaged(path, `it does not begin as one of our files (${bytes.length} bytes)`)
  }
  // First of all: a flipped bit in the version is damage, not a version. Every version has its checksum here.
  if (crc32c(bytes.subarray(8)) !== getU32(bytes, 4)) {
    throw damaged(path, 'its checksum does not match')
  }
  if (getU32(bytes, 8) !== VERSION) {
    throw new EastGuardError(
      'DATA_DIR_NEWER',
      `${path} has format ${getU32(bytes, 8)}, this version knows ${VERSION}`,
    )
  }
  const length = getU32(bytes, 12)
  if (HEADER_BYTES + length !== bytes.length) {
    throw damaged(path, `it has ${bytes.length} bytes, ${HEADER_BYTES + length} were written`)
  }
  return bytes.subarray(HEADER_BYTES)
}

export async function readIfThere(disk: Disk, path: string): Promise<Uint8Array | undefined> {
  try {
    return await readWhole(disk, path)
  } catch (error) {
    if (error instanceof DiskError && error.fault === 'not-found') return undefined
    throw error
  }
}

export async function readWhole(disk: Disk, path: string): Promise<Uint8Array> {
  const file = await disk.open(path, { mode: 'read' })
  try {
    const bytes = new Uint8Array(await file.size())
    let at = 0
    while (at < bytes.length) {
      const got = await file.read(bytes.subarray(at), at)
      if (got === 0) return bytes.subarray(0, at)
      at += got
    }
    return bytes
  } finally {
    await file.close()
  }
}

export function directoryOf(path: string): string {
  const slash = path.lastIndexOf('/')
  return slash < 0 ? '.' : path.slice(0, slash)
}

function damaged(path: string, what: string): EastGuardError {
  return new EastGuardError('DAMAGED', `${path} is damaged: ${what}`)
}

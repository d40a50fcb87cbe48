// A shard's snapshot: one checked file (storage/checked-file.ts) that is replaced whole.
//
//   0  u32  shard
//   4  i64  position: every record of the shard below it is contained
//  12       the state

import { ByteReader, ByteWriter, Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Disk } from '../../ports/disk.ts'
import { readChecked, writeChecked } from '../checked-file.ts'

const NAME = /^(\d{8})\.snapshot$/
const HEAD_BYTES = 12

export function snapshotPath(dir: string, shard: number): string {
  return `${dir}/${String(shard).padStart(8, '0')}.snapshot`
}

/** The shards that have one, in ascending order. */
export async function listSnapshots(disk: Disk, dir: string): Promise<readonly number[]> {
  const shards: number[] = []
  for (const { name } of await disk.list(dir)) {
    const match = NAME.exec(name)
    if (match !== null) shards.push(Number(match[1]))
  }
  return shards.sort((a, b) => a - b)
}

export async function writeSnapshot(
  disk: Disk,
  path: string,
  shard: number,
  state: Uint8Array,
  position: number,
): Promise<void> {
  const w = new ByteWriter(HEAD_BYTES + state.length)
  await writeChecked(disk, path, w.u32(shard).i64(position).raw(state).finish())
}

/** Throws DAMAGED: a snapshot has no second copy here. */
export async function readSnapshot(
  disk: Disk,
  path: string,
  shard: number,
): Promise<{ readonly state: Uint8Array; readonly position: number }> {
  const content = await readChecked(disk, path)
  if (content === undefined) throw damaged(path, 'it is gone')
  try {
    const r = new ByteReader(content)
    const inside = r.u32()
    if (inside !== shard) throw damaged(path, `it is of shard ${inside}`)
    const position = r.i64()
    return { position, state: r.raw(r.left) }
  } catch (error) {
    if (error instanceof Truncated) throw damaged(path, error.message)
    throw error
  }
}

function damaged(path: string, what: string): EastGuardError {
  return new EastGuardError('DAMAGED', `${path} is damaged: ${what}`)
}

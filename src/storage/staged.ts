// What was staged and is still here, by token: whoever knows the metadata says what of it is asked for no more.

import type { Disk } from '../ports/disk.ts'
import { segmentFiles } from './recovery/on-disk.ts'
import { STATE_EXTENSION } from './states.ts'
import { TAIL_EXTENSION } from './tails.ts'
import type { StagedFile } from './types.ts'

export async function listStaged(
  disk: Disk,
): Promise<{ readonly states: readonly StagedFile[]; readonly tails: readonly StagedFile[] }> {
  const states: StagedFile[] = []
  const tails: StagedFile[] = []
  for await (const { key, extension } of segmentFiles(disk)) {
    const token = extension.slice(0, extension.lastIndexOf('.'))
    if (extension.endsWith(STATE_EXTENSION)) states.push({ key, token })
    else if (extension.endsWith(TAIL_EXTENSION)) tails.push({ key, token })
  }
  return { states, tails }
}

// Range states on disk: one checked file per staged state, under its token, beside the segment that it begins.
//
//   topics/<name>-<id>/range-<n>/<20-digit segment>.<token>.state

import type { SegmentKey } from '../model/segment-key.ts'
import { listOrNothing } from './recovery/on-disk.ts'
import { parseSegmentFile } from './segment/paths.ts'
import { type StagedFiles, stagedPath } from './staged-files.ts'

export const STATE_EXTENSION = '.state'

export function statePath(topicName: string, key: SegmentKey, token: string): string {
  return stagedPath(topicName, key, token, STATE_EXTENSION)
}

export class States {
  private readonly files: StagedFiles

  constructor(files: StagedFiles) {
    this.files = files
  }

  async stage(key: SegmentKey, token: string, state: Uint8Array): Promise<void> {
    await this.files.write(key, this.files.path(key, token, STATE_EXTENSION), state)
  }

  /** Rejects with DAMAGED when the file is not what was written. */
  async load(key: SegmentKey, token: string): Promise<Uint8Array | undefined> {
    return this.files.read(this.files.path(key, token, STATE_EXTENSION))
  }

  /**
   * Removes the segment's states but the one under `token`, and those of earlier segments: the range needs no more than the
   * state at the start of its open segment.
   */
  async keep(key: SegmentKey, token: string): Promise<void> {
    await this.files.clearing(() => this.removeOthers(key, token))
  }

  private async removeOthers(key: SegmentKey, token: string): Promise<void> {
    const { disk } = this.files
    const dir = this.files.dir(key)
    let removed = false
    for (const file of await listOrNothing(disk, dir)) {
      const part = parseSegmentFile(file.name)
      if (part === undefined || !part.extension.endsWith(STATE_EXTENSION)) continue
      if (part.segment > key.segment) continue
      if (part.segment === key.segment && part.extension === `${token}${STATE_EXTENSION}`) continue
      await disk.remove(`${dir}/${file.name}`)
      removed = true
    }
    if (removed) await disk.syncDir(dir)
  }
}

// Tails on disk: the last entries of a segment, which every broker that was chosen for the successor stores with the range
// state, under the same token. Whoever had more of the segment may be gone when it is sealed: then these are the only copies.
//
//   topics/<name>-<id>/range-<n>/<20-digit segment>.<token>.tail    entries as everywhere (envelope, batch), in entry order
//
// They are kept until the broker is told that the segment's own replicas have all of it.

import { concatBytes } from '../base/bytes.ts'
import { EastGuardError } from '../base/errors.ts'
import { ENVELOPE_BYTES, type Entry, putEnvelope } from '../model/entry.ts'
import { placeOfKey, type SegmentKey } from '../model/segment-key.ts'
import { directoryOf } from './checked-file.ts'
import { entriesIn } from './segment/check.ts'
import type { StagedFiles } from './staged-files.ts'

export const TAIL_EXTENSION = '.tail'

export class Tails {
  private readonly files: StagedFiles

  constructor(files: StagedFiles) {
    this.files = files
  }

  async stage(of: SegmentKey, token: string, entries: readonly Entry[]): Promise<void> {
    const place = placeOfKey(of)
    const parts: Uint8Array[] = []
    for (const entry of entries) {
      const envelope = new Uint8Array(ENVELOPE_BYTES)
      putEnvelope(envelope, 0, place, entry)
      parts.push(envelope, entry.batch)
    }
    await this.files.write(of, this.files.path(of, token, TAIL_EXTENSION), concatBytes(parts))
  }

  /** Undefined when there is none under the token. Rejects with DAMAGED when it is not what was stored. */
  async load(of: SegmentKey, token: string): Promise<readonly Entry[] | undefined> {
    const path = this.files.path(of, token, TAIL_EXTENSION)
    const content = await this.files.read(path)
    if (content === undefined) return undefined
    const found = entriesIn(placeOfKey(of), content)
    const last = found.at(-1)
    const end = last === undefined ? 0 : last.at + ENVELOPE_BYTES + last.entry.batch.length
    if (end < content.length) {
      throw new EastGuardError('DAMAGED', `${path} is damaged at byte ${end} of its content`)
    }
    return found.map(({ entry }) => entry)
  }

  async drop(of: SegmentKey, token: string): Promise<void> {
    await this.files.clearing(async () => {
      const path = this.files.path(of, token, TAIL_EXTENSION)
      await this.files.disk.remove(path)
      await this.files.disk.syncDir(directoryOf(path))
    })
  }
}

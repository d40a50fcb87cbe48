// A digest of entries, for comparing replicas: SHA-256 over envelopes and batches in entry order, however each replica happens
// to group them into blocks. Two fields of the envelope are passed over: the high watermark, which is what whoever wrote the
// entry happened to know then, and the checksum, which covers it.
//
// The entries are gathered in a buffer: a call into the hash costs more than the bytes of a small batch.

import { createHash } from 'node:crypto'
import { ENVELOPE_BYTES, type Entry, putEnvelope, type SegmentPlace } from '../../model/entry.ts'

const GATHER_BYTES = 64 * 1024

export class EntryDigest {
  private readonly place: SegmentPlace
  private readonly hash = createHash('sha256')
  private readonly gathered = new Uint8Array(GATHER_BYTES)
  private length = 0

  constructor(place: SegmentPlace) {
    this.place = place
  }

  add(entry: Entry): void {
    const { batch } = entry
    if (this.length + ENVELOPE_BYTES + batch.length > GATHER_BYTES) this.flush()
    putEnvelope(this.gathered, this.length, this.place, { ...entry, highWatermark: 0 })
    this.length += ENVELOPE_BYTES
    if (this.length + batch.length > GATHER_BYTES) {
      this.flush()
      this.hash.update(batch)
      return
    }
    this.gathered.set(batch, this.length)
    this.length += batch.length
  }

  private flush(): void {
    this.hash.update(this.gathered.subarray(0, this.length))
    this.length = 0
  }

  /** In hexadecimal. Once. */
  hex(): string {
    this.flush()
    return this.hash.digest('hex')
  }
}

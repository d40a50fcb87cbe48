// The range states that this start of the broker has stored for successors, by segment and token. A state that was staged
// before a restart counts as an open segment that is fenced: it is not in here. What is in memory spares its reader the disk.

import { keyText, type SegmentKey } from '../../model/segment-key.ts'

const KEPT_BYTES_MAX = 16 * 1024 * 1024

export class StagedBook {
  /** By segment, then by token; undefined: on the disk only. */
  private readonly states = new Map<string, Map<string, Uint8Array | undefined>>()
  private bytes = 0

  /** It is durable here. */
  stored(key: SegmentKey, token: string, state: Uint8Array): void {
    const text = keyText(key)
    const tokens = this.states.get(text) ?? new Map<string, Uint8Array | undefined>()
    this.states.set(text, tokens)
    if (tokens.has(token)) return
    const keep = this.bytes + state.length <= KEPT_BYTES_MAX
    if (keep) this.bytes += state.length
    tokens.set(token, keep ? state : undefined)
  }

  has(key: SegmentKey, token: string): boolean {
    return this.states.get(keyText(key))?.has(token) ?? false
  }

  /** Undefined: ask the disk. */
  recall(key: SegmentKey, token: string): Uint8Array | undefined {
    return this.states.get(keyText(key))?.get(token)
  }

  /** It is known which one committed, or that none will be asked for any more. */
  forget(key: SegmentKey): void {
    const text = keyText(key)
    for (const state of this.states.get(text)?.values() ?? []) this.bytes -= state?.length ?? 0
    this.states.delete(text)
  }
}

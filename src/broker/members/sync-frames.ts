// Syncs as frames of the cluster port: what wire/swim writes, in what wire/peer puts around it.
//
//   dialer ── sync ──> acceptor        one frame each way, then the connection ends
//   dialer <─ answer ─ acceptor

import { Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import { FrameReader } from '../../wire/native/frame-reader.ts'
import { FRAME, frameOf, openFrame, PEER_FRAME_BYTES_AROUND } from '../../wire/peer/frame.ts'
import { readRefusal } from '../../wire/peer/hello.ts'
import { SYNC_BYTES_MAX } from '../../wire/swim/sync.ts'

export function syncFrame(kind: number, bytes: Uint8Array): Uint8Array {
  return frameOf(kind, (w) => w.raw(bytes))
}

export type OneFrame =
  | { readonly bytes: Uint8Array }
  /** Why there will be none. */
  | { readonly fault: string }

/** The one frame that comes on a connection; what follows it is not read. */
export class SyncReader {
  private readonly kind: number
  private readonly reader = new FrameReader(PEER_FRAME_BYTES_AROUND + SYNC_BYTES_MAX)

  constructor(kind: number) {
    this.kind = kind
  }

  /** Undefined as long as more must come. */
  read(chunk: Uint8Array): OneFrame | undefined {
    let found: OneFrame | undefined
    try {
      this.reader.push(chunk, (frame) => {
        found = this.opened(frame)
        return false
      })
    } catch (error) {
      if (!(error instanceof Truncated || error instanceof EastGuardError)) throw error
      return { fault: `${error.message}; is that a cluster_port?` }
    }
    return found
  }

  private opened(frame: Uint8Array): OneFrame {
    const { kind, body } = openFrame(frame)
    if (kind === FRAME.REFUSAL) return { fault: `it is a refusal: ${readRefusal(body).text}` }
    if (kind !== this.kind) return { fault: `a frame of kind ${kind} came, not ${this.kind}` }
    return { bytes: body.raw(body.left) }
  }
}

// The bytes of a connection as frames. All whole frames of a chunk are decoded before the first is acted on, so that what
// their receiver throws is never taken for the sender's fault.

import { Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { NodeId } from '../../model/ids.ts'
import { FrameReader } from '../../wire/native/frame-reader.ts'
import { PEER_FRAME_BYTES_MAX } from '../../wire/peer/frame.ts'
import { PEER_HELLO_BYTES_MAX } from '../../wire/peer/hello.ts'
import { type PeerFrame, readFrame } from '../../wire/peer/read-frame.ts'

export interface CutFrames {
  readonly frames: readonly PeerFrame[]
  /** Why nothing can be read after these. */
  readonly fault: string | undefined
}

export class Frames {
  private readonly self: NodeId
  private readonly reader = new FrameReader(PEER_HELLO_BYTES_MAX)
  private from: NodeId | undefined

  constructor(self: NodeId) {
    this.self = self
  }

  /** It has said hello: from now on it may send messages, and frames as large as those are. */
  greeted(from: NodeId): void {
    this.from = from
    this.reader.frameBytesMax = PEER_FRAME_BYTES_MAX
  }

  cut(chunk: Uint8Array): CutFrames {
    const frames: PeerFrame[] = []
    try {
      this.reader.push(chunk, (frame) => {
        frames.push(readFrame(frame, this.from, this.self))
      })
    } catch (error) {
      if (!(error instanceof Truncated || error instanceof EastGuardError)) throw error
      return { frames, fault: error.message }
    }
    return { frames, fault: undefined }
  }
}

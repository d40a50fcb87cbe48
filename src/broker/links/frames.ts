// The bytes of a connection as frames: the links' own, and those of the protocol that is spoken on them. All whole frames of a
// chunk are decoded before the first is acted on, so that what their receiver throws is never taken for the sender's fault.

import { Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { NodeId } from '../../model/ids.ts'
import { FrameReader } from '../../wire/native/frame-reader.ts'
import { PEER_HELLO_BYTES_MAX } from '../../wire/peer/hello.ts'
import { type LinkFrame, readLinkFrame } from '../../wire/peer/read-frame.ts'
import type { Protocol, Way } from './types.ts'

export type AnyFrame<M> = LinkFrame | { readonly kind: 'messages'; readonly messages: readonly M[] }

export interface CutFrames<M> {
  readonly frames: readonly AnyFrame<M>[]
  /** Why nothing can be read after these. */
  readonly fault: string | undefined
}

export class Frames<M> {
  private readonly self: NodeId
  private readonly protocol: Protocol<M>
  private readonly way: Way
  private readonly reader = new FrameReader(PEER_HELLO_BYTES_MAX)
  private from: NodeId | undefined

  constructor(self: NodeId, protocol: Protocol<M>, way: Way) {
    this.self = self
    this.protocol = protocol
    this.way = way
  }

  /** It has said who it is: from now on it may send messages, and frames as large as those are. */
  greeted(from: NodeId): void {
    this.from = from
    this.reader.frameBytesMax = this.protocol.frameBytesMax
  }

  cut(chunk: Uint8Array): CutFrames<M> {
    const frames: AnyFrame<M>[] = []
    try {
      this.reader.push(chunk, (frame) => {
        frames.push(this.read(frame))
      })
    } catch (error) {
      if (!(error instanceof Truncated || error instanceof EastGuardError)) throw error
      return { frames, fault: error.message }
    }
    return { frames, fault: undefined }
  }

  private read(frame: Uint8Array): AnyFrame<M> {
    const own = readLinkFrame(frame, this.protocol.magic)
    // What the acceptor says comes right behind its welcome.
    if (own?.kind === 'welcome' && this.way === 'out') this.greeted(own.welcome.nodeId)
    if (own !== undefined) return own
    const { from, self, protocol, way } = this
    if (from === undefined) throw new Truncated('messages came before a hello')
    return { kind: 'messages', messages: protocol.read(frame, from, self, way) }
  }
}

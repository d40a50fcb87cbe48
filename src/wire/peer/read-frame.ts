// The frames of a link itself, as what they say, whatever else is spoken on it.

import { Truncated } from '../../base/cursor.ts'
import type { NodeId } from '../../model/ids.ts'
import { FRAME, openFrame, readMessages, readNumbered } from './frame.ts'
import {
  type Hello,
  type HelloRefusal,
  readHello,
  readRefusal,
  readWelcome,
  type Welcome,
} from './hello.ts'
import type { PeerMessage } from './types.ts'

export type LinkFrame =
  | { readonly kind: 'hello'; readonly hello: Hello }
  | { readonly kind: 'welcome'; readonly welcome: Welcome }
  | { readonly kind: 'refusal'; readonly refusal: HelloRefusal }
  | { readonly kind: 'ping'; readonly number: number }
  | { readonly kind: 'pong'; readonly number: number }

/** In a frame without its length field. */
const KIND_AT = 4

/** Undefined: the frame is of another kind. `magic` is that of the hellos. Throws Truncated. */
export function readLinkFrame(frame: Uint8Array, magic: number): LinkFrame | undefined {
  const kind = frame[KIND_AT]
  if (kind === undefined) throw new Truncated('a frame without a kind')
  switch (kind) {
    case FRAME.HELLO:
      return { kind: 'hello', hello: readHello(openFrame(frame).body, magic) }
    case FRAME.WELCOME:
      return { kind: 'welcome', welcome: readWelcome(openFrame(frame).body, magic) }
    case FRAME.REFUSAL:
      return { kind: 'refusal', refusal: readRefusal(openFrame(frame).body) }
    case FRAME.PING:
      return { kind: 'ping', number: readNumbered(openFrame(frame).body) }
    case FRAME.PONG:
      return { kind: 'pong', number: readNumbered(openFrame(frame).body) }
    default:
      return undefined
  }
}

/** Throws Truncated for a frame that is not one of messages. */
export function readMessagesFrame(
  frame: Uint8Array,
  from: NodeId,
  to: NodeId,
): readonly PeerMessage[] {
  const { kind, body } = openFrame(frame)
  if (kind !== FRAME.MESSAGES) throw new Truncated(`a frame of the unknown kind ${kind}`)
  return readMessages(body, from, to)
}

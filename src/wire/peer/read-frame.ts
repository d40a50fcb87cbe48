// Any frame, as what it says.

import { type ByteReader, Truncated } from '../../base/cursor.ts'
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

export type PeerFrame =
  | { readonly kind: 'hello'; readonly hello: Hello }
  | { readonly kind: 'welcome'; readonly welcome: Welcome }
  | { readonly kind: 'refusal'; readonly refusal: HelloRefusal }
  | { readonly kind: 'ping'; readonly number: number }
  | { readonly kind: 'pong'; readonly number: number }
  | { readonly kind: 'messages'; readonly messages: readonly PeerMessage[] }

/** `from` is undefined as long as nobody has said hello: messages are malformed then. Throws Truncated. */
export function readFrame(frame: Uint8Array, from: NodeId | undefined, to: NodeId): PeerFrame {
  const { kind, body } = openFrame(frame)
  switch (kind) {
    case FRAME.HELLO:
      return { kind: 'hello', hello: readHello(body) }
    case FRAME.WELCOME:
      return { kind: 'welcome', welcome: readWelcome(body) }
    case FRAME.REFUSAL:
      return { kind: 'refusal', refusal: readRefusal(body) }
    case FRAME.PING:
      return { kind: 'ping', number: readNumbered(body) }
    case FRAME.PONG:
      return { kind: 'pong', number: readNumbered(body) }
    case FRAME.MESSAGES:
      return { kind: 'messages', messages: messagesFrom(body, from, to) }
    default:
      throw new Truncated(`a frame of the unknown kind ${kind}`)
  }
}

function messagesFrom(r: ByteReader, from: NodeId | undefined, to: NodeId): readonly PeerMessage[] {
  if (from === undefined) throw new Truncated('messages came before a hello')
  return readMessages(r, from, to)
}

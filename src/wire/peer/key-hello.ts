// How a sealed connection begins, before any hello: frames in the clear, of which nothing needs to be kept secret, and which
// hold what the connection's keys are derived from.
//
//   key hello     u8 version │ 16B which key │ 32B of chance      dialer -> acceptor, first
//   key welcome   32B of chance                                   acceptor -> dialer, first
//
// Which key: bytes that follow from it, and that it does not follow from. See broker/seal for what comes behind.

import { type ByteReader, type ByteWriter, Truncated } from '../../base/cursor.ts'
import { FRAME, frameOf } from './frame.ts'

const KEY_VERSION = 1
export const KEY_NAME_BYTES = 16
export const KEY_CHANCE_BYTES = 32

export interface KeyHello {
  /** Which key. */
  readonly name: Uint8Array
  readonly chance: Uint8Array
}

export function keyHelloFrame({ name, chance }: KeyHello): Uint8Array {
  return frameOf(FRAME.KEY_HELLO, (w: ByteWriter) => w.u8(KEY_VERSION).raw(name).raw(chance))
}
export function readKeyHello(r: ByteReader): KeyHello {
  const version = r.u8()
  if (version !== KEY_VERSION) throw new Truncated(`a key hello has version ${version}`)
  const hello = { name: r.raw(KEY_NAME_BYTES), chance: r.raw(KEY_CHANCE_BYTES) }
  r.done()
  return hello
}

export function keyWelcomeFrame(chance: Uint8Array): Uint8Array {
  return frameOf(FRAME.KEY_WELCOME, (w: ByteWriter) => w.raw(chance))
}
export function readKeyWelcome(r: ByteReader): Uint8Array {
  const chance = r.raw(KEY_CHANCE_BYTES)
  r.done()
  return chance
}

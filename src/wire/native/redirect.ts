// The end of every item whose status is NOT_LEADER or NOT_REPLICA: where to go instead.
//
//   redirect   i64 segment (-1: not known) │ list { 16B node id │ text host │ u16 port }

import { fromHex, toHex } from '../../base/bytes.ts'
import { type ByteReader, ByteWriter, readList, writeList } from '../../base/cursor.ts'
import type { EastGuardError, ErrorCode } from '../../base/errors.ts'
import { nodeId } from '../../model/ids.ts'
import { NO_REDIRECT, type Redirect, redirectIn, redirects } from '../../model/redirect.ts'

/** An item of an answer that may send the client elsewhere. */
export interface Redirecting {
  readonly error: ErrorCode | undefined
  /** Present exactly when `error` is one that redirects. */
  readonly redirect?: Redirect
}

/** What an item says of an error: its code, and where to go when it redirects. */
export function statusOf(error: EastGuardError): Redirecting & { readonly error: ErrorCode } {
  const { code } = error
  return redirects(code) ? { error: code, redirect: redirectIn(error) } : { error: code }
}

const BROKER_BYTES_LEAST = 20

/** Nothing at all for an item that does not redirect. */
export function writeRedirect(w: ByteWriter, { error, redirect }: Redirecting): void {
  if (!redirects(error)) return
  const { segment, brokers } = redirect ?? NO_REDIRECT
  w.i64(segment)
  writeList(w, brokers, (_, broker) => {
    w.raw(fromHex(broker.nodeId)).text(broker.address.host).u16(broker.address.port)
  })
}

export function redirectBytes(item: Redirecting): Uint8Array {
  const w = new ByteWriter()
  writeRedirect(w, item)
  return w.finish()
}

/** To be spread into the item: nothing unless its error redirects. */
export function readRedirect(
  r: ByteReader,
  error: ErrorCode | undefined,
): { readonly redirect?: Redirect } {
  if (!redirects(error)) return {}
  const segment = r.i64()
  const brokers = readList(r, BROKER_BYTES_LEAST, () => ({
    nodeId: nodeId(toHex(r.raw(16))),
    address: { host: r.text(), port: r.u16() },
  }))
  return { redirect: { segment, brokers } }
}

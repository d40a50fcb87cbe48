// Reading into memory that is used again. Node gives each read of a socket a new buffer of 64 KiB. The engine counts them
// all, and at 200 MB/s collected the whole heap every 40 ms for their sake. Here every socket of the process reads into
// one buffer, which is lent to the receiver for the length of the call: a socket is read when it is readable, and what
// was read is handed on before any other is (libuv reads at readiness, on the systems that a broker runs on).
//
//   socket a ──read──> [ RECEIVED ] ──onData(view)──> copied by the receiver
//   socket b ──read──> [ RECEIVED ] ──onData(view)──> ...
//
// Node offers this for the sockets that we connect (`onread`). Those that a server accepts are made by the server; their
// handle is moved to a socket that was made with it. That is no documented way, so a Node that does it otherwise gets the
// ordinary path: buffers of its own, and the same bytes.

import net from 'node:net'

/** One read takes at most so much. Higher: fewer calls, and longer until the other sockets have their turn. */
const RECEIVE_BYTES = 256 * 1024
/** No Buffer: its `slice` makes a view where that of a Uint8Array makes the copy that a receiver wants. */
const RECEIVED: Uint8Array = new Uint8Array(RECEIVE_BYTES)

/** Where the bytes of a socket go; set before anything is read. */
export interface Lender {
  lend: (chunk: Uint8Array) => void
}

/** For `net.connect`. */
export function readingFor(lender: Lender): net.OnReadOpts {
  return {
    buffer: RECEIVED,
    callback: (bytes) => {
      lender.lend(RECEIVED.subarray(0, bytes))
      return true
    },
  }
}

/** A socket in place of one that a server with `pauseOnConnect` accepted, paused as well. */
export function acceptLending(accepted: net.Socket, lender: Lender): net.Socket {
  const inside = accepted as unknown as { _handle?: { useUserBuffer?: unknown } | null }
  const handle = inside._handle
  if (typeof handle?.useUserBuffer !== 'function') {
    accepted.on('data', (chunk: Uint8Array) => lender.lend(chunk))
    return accepted.pause()
  }
  inside._handle = null
  const options: object = { handle, allowHalfOpen: true, onread: readingFor(lender) }
  return new net.Socket(options).pause()
}

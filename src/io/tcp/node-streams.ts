// The streams port over TCP.
//
// A turn of the event loop often answers hundreds of requests of one connection. Sent one by one they would cost a
// system call each, which alone divides the rate by four. So `write` only queues; the first one of a turn schedules
// a flush for the turn's end (setImmediate runs after all sockets that were readable have been read), and the flush
// hands every connection's queue to its socket as one vectored write.

import net from 'node:net'
import { setImmediate } from 'node:timers'
import { assert } from '../../base/assert.ts'
import type { Address, Connection, ConnectOptions, Listener, Streams } from '../../ports/streams.ts'
import { TcpConnection } from './connection.ts'
import { networkError, showAddress } from './errors.ts'
import { acceptLending, type Lender, readingFor } from './lent.ts'

/** Connections that wait for `accept`; a whole cluster's clients may come back in one second. */
const BACKLOG = 1024

/**
 * A machine that loses its power tells nobody, and an end that only listens would wait for it for ever. After so long without
 * a word the system asks, a second apart, and gives up after the tenth time.
 */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelay: 10_000 } as const

export const nodeStreams: Streams = { listen, connect }

/** The connections that were written to in this turn. */
let dirty: TcpConnection[] = []

function flushAll(): void {
  const flushing = dirty
  dirty = []
  for (const connection of flushing) connection.flush()
}

function flushLater(connection: TcpConnection): void {
  if (dirty.push(connection) === 1) setImmediate(flushAll)
}

function newLender(): Lender {
  return {
    lend: () => {
      assert(false, 'nothing is read before there are handlers')
    },
  }
}

function listen(
  address: Address,
  onConnection: (connection: Connection) => void,
): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const options = { allowHalfOpen: true, noDelay: true, pauseOnConnect: true, ...KEEP_ALIVE }
    const server = net.createServer(options, (accepted) => {
      const lender = newLender()
      const socket = acceptLending(accepted, lender)
      const remote = { host: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 }
      onConnection(new TcpConnection(socket, lender, remote, flushLater))
    })
    const refuse = (error: Error): void => {
      reject(networkError(`cannot listen on ${showAddress(address)}`, error))
    }
    server.once('error', refuse)
    server.listen({ host: address.host, port: address.port, backlog: BACKLOG }, () => {
      server.off('error', refuse)
      // One connection could not be accepted, for want of descriptors perhaps; those that can be still are.
      server.on('error', () => undefined)
      const bound = server.address() as net.AddressInfo
      resolve({
        address: { host: address.host, port: bound.port },
        // The port is free at once; waiting for the callback would wait for every open connection.
        close: async () => {
          server.close()
        },
      })
    })
  })
}

function connect(address: Address, options: ConnectOptions): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const doing = `cannot connect to ${showAddress(address)}`
    const { signal, timeoutMs } = options
    if (signal?.aborted === true) {
      reject(new Error(`${doing}: aborted`, { cause: signal.reason }))
      return
    }
    const lender = newLender()
    const socket = net.connect({
      ...KEEP_ALIVE,
      host: address.host,
      port: address.port,
      allowHalfOpen: true,
      noDelay: true,
      onread: readingFor(lender),
    })
    socket.pause()
    const settle = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      socket.off('error', fail)
    }
    const giveUp = (error: Error): void => {
      settle()
      socket.on('error', () => undefined)
      socket.destroy()
      reject(error)
    }
    const fail = (error: Error): void => giveUp(networkError(doing, error))
    const abort = (): void => giveUp(new Error(`${doing}: aborted`, { cause: signal?.reason }))
    const timer = setTimeout(() => {
      giveUp(new Error(`${doing}: no answer within ${timeoutMs} ms`))
    }, timeoutMs)
    socket.once('error', fail)
    signal?.addEventListener('abort', abort, { once: true })
    socket.once('connect', () => {
      settle()
      resolve(new TcpConnection(socket, lender, address, flushLater))
    })
  })
}

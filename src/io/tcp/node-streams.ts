// The streams port over node:net.

import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Address, Connection, ConnectOptions, Listener, Streams } from '../../ports/streams.ts'
import { TcpConnection } from './connection.ts'

export const nodeStreams: Streams = {
  listen(address: Address, onConnection: (connection: Connection) => void): Promise<Listener> {
    return new Promise((resolve, reject) => {
      const server = createServer({ allowHalfOpen: true }, (socket) =>
        onConnection(new TcpConnection(socket)),
      )
      server.once('error', (cause) => reject(named('listen on', address, cause)))
      server.listen(address.port, address.host, () => {
        const { address: host, port } = server.address() as AddressInfo
        resolve({
          address: { host, port },
          // Waiting for open connections too would make closing the listener depend on every client.
          close: () =>
            new Promise((closed) => {
              server.close()
              server.unref()
              closed()
            }),
        })
      })
    })
  },

  connect(address: Address, options: ConnectOptions): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const { signal } = options
      if (signal?.aborted === true) {
        reject(named('connect to', address, new Error('aborted')))
        return
      }
      const socket: Socket = connect({ ...address, allowHalfOpen: true })
      const fail = (cause: Error): void => {
        settle()
        socket.on('error', () => {})
        socket.destroy()
        reject(named('connect to', address, cause))
      }
      const onAbort = (): void => fail(new Error('aborted'))
      const timer = setTimeout(
        () => fail(new Error(`no answer within ${options.timeoutMs} ms`)),
        options.timeoutMs,
      )
      const settle = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        socket.removeListener('error', fail)
      }
      socket.once('error', fail)
      signal?.addEventListener('abort', onAbort, { once: true })
      socket.once('connect', () => {
        settle()
        resolve(new TcpConnection(socket))
      })
    })
  },
}

function named(doing: string, address: Address, cause: Error): Error {
  return new Error(`cannot ${doing} ${address.host}:${address.port}: ${cause.message}`, { cause })
}

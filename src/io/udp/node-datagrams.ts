// The datagrams port over node:dgram.

import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { DatagramSocket, Datagrams } from '../../ports/datagrams.ts'
import type { Address } from '../../ports/streams.ts'
import { networkError, showAddress } from '../tcp/errors.ts'

export const nodeDatagrams: Datagrams = {
  bind(
    address: Address,
    onPacket: (packet: Uint8Array, from: Address) => void,
  ): Promise<DatagramSocket> {
    return new Promise((resolve, reject) => {
      const socket = createSocket(isIPv6(address.host) ? 'udp6' : 'udp4')
      let closed = false
      const refuse = (cause: Error): void => {
        reject(networkError(`cannot listen on ${showAddress(address)} (UDP)`, cause))
      }
      socket.once('error', refuse)
      socket.on('message', (packet, from) => {
        onPacket(packet, { host: from.address, port: from.port })
      })
      socket.bind(address.port, address.host, () => {
        socket.removeListener('error', refuse)
        // A packet that cannot be sent is a packet that was lost.
        socket.on('error', () => undefined)
        resolve({
          address: { host: address.host, port: socket.address().port },
          send: (packet, to) => {
            if (!closed) socket.send(packet, to.port, to.host, () => undefined)
          },
          close: () =>
            new Promise((done) => {
              if (closed) return done()
              closed = true
              socket.close(() => done())
            }),
        })
      })
    })
  },
}

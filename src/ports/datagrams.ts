// Unreliable packets between brokers (UDP): any may be lost, doubled, delayed or overtaken.

import type { Address } from './streams.ts'

export interface DatagramSocket {
  readonly address: Address
  /** Fire and forget; errors of a single packet are swallowed. */
  send(packet: Uint8Array, to: Address): void
  close(): Promise<void>
}

export interface Datagrams {
  bind(
    address: Address,
    onPacket: (packet: Uint8Array, from: Address) => void,
  ): Promise<DatagramSocket>
}

// How links behave. The operator sees none of these: they follow from what the protocols above ask of a link.

import { MIB } from '../../model/policy.ts'

export interface PeersSettings {
  /** From the beginning of a dial to the answer to its hello. Longer: a slow network gets its links; a dead peer is found later. */
  readonly dialTimeoutMs: number
  /** The first pause after a failure, and the longest. */
  readonly backoffMs: number
  readonly backoffMaxMs: number
  readonly pingMs: number
  /** A ping that is not answered for so long ends the link. */
  readonly pongTimeoutMs: number
  /** Bytes that wait on a link: more are dropped. */
  readonly outboxBytesMax: number
  /** Bytes that wait for a dial: more are dropped. */
  readonly dialBytesMax: number
  /** Connections that are taken from peers: more are closed at once. */
  readonly connectionsMax: number
}

export const PEERS_SETTINGS: PeersSettings = {
  dialTimeoutMs: 1000,
  backoffMs: 50,
  backoffMaxMs: 2000,
  pingMs: 1000,
  pongTimeoutMs: 3000,
  outboxBytesMax: 16 * MIB,
  dialBytesMax: MIB / 4,
  connectionsMax: 1024,
}

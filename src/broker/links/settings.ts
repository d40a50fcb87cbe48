// How links behave. The operator sees none of these: they follow from what the protocols above ask of a link.

export interface LinkSettings {
  /** From the beginning of a dial to the answer to its hello. Longer: a slow network gets its links; a dead peer is found later. */
  readonly dialTimeoutMs: number
  /** The first pause after a failure, and the longest. */
  readonly backoffMs: number
  readonly backoffMaxMs: number
  readonly pingMs: number
  /** A ping that is not answered for so long ends the link. */
  readonly pongTimeoutMs: number
  /** Connections that are taken from peers: more are closed at once. */
  readonly connectionsMax: number
}

export const LINK_SETTINGS: LinkSettings = {
  dialTimeoutMs: 1000,
  backoffMs: 50,
  backoffMaxMs: 2000,
  pingMs: 1000,
  pongTimeoutMs: 3000,
  connectionsMax: 1024,
}

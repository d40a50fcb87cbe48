// How links behave on the cluster port.

import { MIB } from '../../model/policy.ts'
import { LINK_SETTINGS, type LinkSettings } from '../links/settings.ts'

export interface PeersSettings extends LinkSettings {
  /** Bytes that wait on a link: more are dropped. */
  readonly outboxBytesMax: number
  /** Bytes that wait for a dial: more are dropped. */
  readonly dialBytesMax: number
}

export const PEERS_SETTINGS: PeersSettings = {
  ...LINK_SETTINGS,
  outboxBytesMax: 16 * MIB,
  dialBytesMax: MIB / 4,
}

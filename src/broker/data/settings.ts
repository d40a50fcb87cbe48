// How links behave on the data port.

import { LINK_SETTINGS, type LinkSettings } from '../links/settings.ts'

export interface DataSettings extends LinkSettings {
  /** Of flows, given to a connection and not yet taken by the operating system. Higher: fewer stalls. Lower: what comes later waits behind less. */
  readonly queuedBytesMax: number
  /** Words that wait on a connection: more are dropped. */
  readonly wordBytesMax: number
}

export const DATA_SETTINGS: DataSettings = {
  ...LINK_SETTINGS,
  queuedBytesMax: 256 * 1024,
  wordBytesMax: 1024 * 1024,
}

// How often a broker's process collects its heap. The engine starts a collection when heap and buffers together have grown
// by so much since the last one, and allows a small heap the least: 8 MiB. A broker is just that, a small heap beside a
// stream of large buffers, so it marked the same 14 MB anew for every few MB that it received.
//
// Four times what was live is the most that the engine would allow by itself; here it is so from the start. Higher: fewer
// collections, more dead buffers that wait for one (the engine still keeps half of what is left of its limit).

import { setFlagsFromString } from 'node:v8'

const FLAG = '--heap-growing-percent'
const GROWING_PERCENT = 300

/** Unless the command line of Node says otherwise. The engine reads this flag at every collection. */
export function growHeapFreely(nodeFlags: readonly string[]): void {
  if (nodeFlags.some((flag) => flag.startsWith(FLAG))) return
  setFlagsFromString(`${FLAG}=${GROWING_PERCENT}`)
}

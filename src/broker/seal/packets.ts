// Packets that only brokers with the cluster key can read or write.
//
//   sealed   24B of chance │ the packet, encrypted │ 16B tag        40 bytes more than the packet: PACKET_SEAL_BYTES
//
// Every packet has a key of its own, derived from the cluster key and the chance in front of it. So nobody counts, and no
// state is kept of anybody: what seals twice under one key by mistake would need the same 24 bytes twice.
//
// A packet that is caught and sent again later opens again, and is no worse than one that was slow. What it tells is ordered
// by lives and incarnations, and what is old is passed over; what accuses a broker is contradicted by it. An answer counts
// only for the one question that is open and has its number. A broker that is asked again answers, to where the packet came
// from, with a packet that only brokers can read. A refusal names the one life that it refuses. The most that can come of it:
// a broker that has been gone for so long that it is forgotten is asked for once more, and found dead. No promise hangs on who
// is taken for alive. There is no window of time, since that would make a cluster depend on its clocks.

import { concatBytes } from '../../base/bytes.ts'
import { PACKET_BYTES_MAX, PACKET_SEAL_BYTES } from '../../model/swim.ts'
import type { ClusterKey, ClusterKeys } from './cluster-keys.ts'

const LABEL = 'eastguard packet 1'
const TAG_BYTES = 16
const CHANCE_BYTES = PACKET_SEAL_BYTES - TAG_BYTES

export interface PacketSeal {
  /** What goes over the network for this packet. */
  seal(packet: Uint8Array): Uint8Array
  /** The packet for what came over the network; undefined: nobody who has the key has sealed it. */
  open(sealed: Uint8Array): Uint8Array | undefined
}

/** `keys` undefined: packets go in the clear, and room for the seal stays empty. */
export function packetSeal(keys: ClusterKeys | undefined): PacketSeal {
  if (keys === undefined) return { seal: (packet) => packet, open: (packet) => packet }
  const { secrets, random } = keys
  const keyOf = ({ secret }: ClusterKey, chance: Uint8Array): Uint8Array =>
    secrets.derive(secret, chance, LABEL)
  return {
    seal: (packet) => {
      const chance = random.bytes(CHANCE_BYTES)
      return concatBytes([chance, ...secrets.seal(keyOf(keys.first, chance), 0, [packet])])
    },
    open: (sealed) => {
      if (sealed.length < PACKET_SEAL_BYTES || sealed.length > PACKET_BYTES_MAX) return undefined
      const chance = sealed.subarray(0, CHANCE_BYTES)
      const rest = sealed.subarray(CHANCE_BYTES)
      for (const key of keys.all) {
        const packet = secrets.open(keyOf(key, chance), 0, rest)
        if (packet !== undefined) return packet
      }
      return undefined
    },
  }
}

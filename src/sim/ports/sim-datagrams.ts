// Packets between simulated machines: any may be lost, doubled, delayed and so overtaken, as the link between two of them
// is at that moment.

import type { Prng } from '../../base/prng.ts'
import type { DatagramSocket, Datagrams } from '../../ports/datagrams.ts'
import type { Address, Listener } from '../../ports/streams.ts'
import type { SimClock } from './clock.ts'
import type { Gate } from './gate.ts'
import type { Link } from './links.ts'

/** What has happened to packets. */
export interface PacketCounts {
  lostPackets: number
  doubledPackets: number
  overtakenPackets: number
}

type OnPacket = (packet: Uint8Array, from: Address) => void

/** What a kernel keeps for a process that does not read. */
const UNREAD_BYTES_MAX = 208 * 1024

export interface PacketWorld {
  readonly clock: SimClock
  readonly gate: Gate
  readonly chance: Prng
  readonly counts: PacketCounts
  readonly link: (from: string, to: string) => Link
  readonly bind: (address: Address, receiver: OnPacket) => Listener
  readonly receiverAt: (to: Address) => OnPacket | undefined
}

export function simDatagrams(world: PacketWorld): Datagrams {
  return {
    bind: async (address, onPacket): Promise<DatagramSocket> => {
      const bound = world.bind(address, gated(world, onPacket))
      /** By host: when what was sent last arrives. */
      const arrivals = new Map<string, number>()
      let open = true
      return {
        address: bound.address,
        send: (packet, to) => {
          if (open) send(world, packet, bound.address, to, arrivals)
        },
        close: () => {
          open = false
          return bound.close()
        },
      }
    },
  }
}

function gated({ gate, counts }: PacketWorld, onPacket: OnPacket): OnPacket {
  let unreadBytes = 0
  return (packet, from) => {
    if (gate.held && unreadBytes + packet.length > UNREAD_BYTES_MAX) {
      counts.lostPackets++
      return
    }
    unreadBytes += packet.length
    gate.pass(() => {
      unreadBytes -= packet.length
      onPacket(packet, from)
    })
  }
}

function send(
  { clock, chance, counts, link, receiverAt }: PacketWorld,
  packet: Uint8Array,
  from: Address,
  to: Address,
  arrivals: Map<string, number>,
): void {
  const way = link(from.host, to.host)
  const { packetLoss, packetDoubling } = way.conditions
  if (chance.float() < packetLoss || !way.passes || way.crowded) {
    counts.lostPackets++
    return
  }
  const copies = chance.float() < packetDoubling ? 2 : 1
  counts.doubledPackets += copies - 1
  for (let i = 0; i < copies; i++) {
    // A receiver may change what it gets, so each copy is its own.
    const copy = packet.slice()
    const ms = way.delay(packet.length)
    const at = clock.monotonic() + ms
    if (at < (arrivals.get(to.host) ?? 0)) counts.overtakenPackets++
    else arrivals.set(to.host, at)
    clock.after(ms, () => {
      if (way.passes) receiverAt(to)?.(copy, from)
      else counts.lostPackets++
    })
  }
}

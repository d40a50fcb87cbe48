// Two simulated hosts with a connection between them, and what each end hears.

import { prng } from '../../src/base/prng.ts'
import type { Address, Connection } from '../../src/ports/streams.ts'
import { SimClock } from '../../src/sim/ports/clock.ts'
import { Gate } from '../../src/sim/ports/gate.ts'
import { type NetworkOptions, type SimNetwork, simNetwork } from '../../src/sim/ports/network.ts'
import { settle } from './support.ts'

export class End {
  readonly connection: Connection
  readonly bytes: number[] = []
  closes = 0
  error: string | undefined

  constructor(connection: Connection) {
    this.connection = connection
    connection.handle({
      onData: (chunk) => this.bytes.push(...chunk),
      onClose: (error) => {
        this.closes++
        this.error = error?.message
      },
    })
  }

  send(...bytes: readonly number[]): void {
    this.connection.write([Uint8Array.from(bytes)])
  }
}

export interface Pair {
  readonly clock: SimClock
  readonly network: SimNetwork
  /** On host a, which called. */
  readonly near: End
  /** On host b. */
  readonly far: End
  readonly nearGate: Gate
  readonly farGate: Gate
  readonly address: Address
  readonly pass: (ms: number) => Promise<void>
  /** Another connection from a to b. */
  readonly dial: (timeoutMs: number) => Promise<End>
}

export async function pair(options: Partial<NetworkOptions> = {}): Promise<Pair> {
  const clock = new SimClock()
  const network = simNetwork({ seed: 1, ...options, clock })
  const pass = (ms: number): Promise<void> => clock.advance(ms, settle)
  const nearGate = new Gate(clock)
  const farGate = new Gate(clock)
  const accepted: End[] = []
  const listener = await network
    .streams('b', farGate)
    .listen({ host: 'b', port: 1 }, (connection) => accepted.push(new End(connection)))
  const streams = network.streams('a', nearGate)
  const { address } = listener
  const dial = async (timeoutMs: number): Promise<End> =>
    new End(await streams.connect(address, { timeoutMs }))
  const dialled = dial(1000)
  await pass(50)
  const near = await dialled
  const far = accepted[0] as End
  return { clock, network, near, far, nearGate, farGate, address, pass, dial }
}

export function someBytes(length: number): readonly number[] {
  return [...prng(7).bytes(length)]
}

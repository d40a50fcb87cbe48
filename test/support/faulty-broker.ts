// A broker in a process of its own whose disk a test can break.

import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type BrokerOptions, type BrokerProcess, spawnBroker } from './broker-process.ts'
import type { FaultCommand } from './fault-commands.ts'

const PROGRAM = fileURLToPath(new URL('./faulty-broker-main.js', import.meta.url))

export interface FaultyBroker extends BrokerProcess {
  /** Resolves when the fault holds. */
  fault(command: FaultCommand): Promise<void>
}

export async function spawnFaultyBroker(
  options: Omit<BrokerOptions, 'program'> & { readonly faults?: readonly FaultCommand[] },
  ports?: { readonly port: number; readonly httpPort: number },
): Promise<FaultyBroker> {
  const program = { path: PROGRAM, words: [JSON.stringify(options.faults ?? [])] }
  const broker = await spawnBroker({ ...options, program }, ports)
  const fault = async (command: FaultCommand): Promise<void> => {
    const done = once(broker.child, 'message')
    broker.child.send(command)
    await done
  }
  return { ...broker, fault }
}

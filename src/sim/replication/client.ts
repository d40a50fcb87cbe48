// What the clients of a run have in common: how they reach the brokers, and how long they wait.

import { EastGuardClient } from '../../client/client.ts'
import { CLIENT_PORT } from '../cluster/machines.ts'
import { brokerHost } from '../cluster/step.ts'
import type { ProcessPorts } from '../process.ts'
import { BROKERS } from './plan.ts'

export const PATIENCE_MS = 6000

/** `near`: the broker whose replicas it prefers. */
export function connect(host: string, ports: ProcessPorts, near?: number): EastGuardClient {
  return new EastGuardClient(
    {
      seeds: Array.from({ length: BROKERS }, (_, i) => `${brokerHost(i)}:${CLIENT_PORT}`),
      clientName: host,
      connectTimeoutMs: 300,
      requestTimeoutMs: PATIENCE_MS,
      backoffMs: 20,
      backoffMaxMs: 500,
      hostLabel: near === undefined ? host : brokerHost(near),
    },
    ports,
  )
}

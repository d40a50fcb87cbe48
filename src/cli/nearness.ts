// Where the machine of this terminal stands: brokers beside it are told the same by the same variables.

import type { ClientOptions } from '../client/api.ts'

/** The labels that the environment gives; what it does not give is left to the client's defaults. */
export function nearness(
  env: Readonly<Record<string, string | undefined>>,
): Pick<ClientOptions, 'hostLabel' | 'rackLabel'> {
  const hostLabel = env['EASTGUARD_HOST_LABEL']
  const rackLabel = env['EASTGUARD_RACK_LABEL']
  return {
    ...(hostLabel !== undefined && { hostLabel }),
    ...(rackLabel !== undefined && { rackLabel }),
  }
}

// The SDK on the machine's own network, clocks and processors: what `import { EastGuard } from 'eastguard'` gives.

import { hostname } from 'node:os'
import type { ClientOptions } from '../client/api.ts'
import { EastGuardClient } from '../client/client.ts'
import { systemClock } from '../io/clock/system-clock.ts'
import { nodeCompute } from '../io/compute/node-compute.ts'
import { pinoLog } from '../io/log/pino-log.ts'
import { systemRandom } from '../io/random/system-random.ts'
import { nodeStreams } from '../io/tcp/node-streams.ts'
import type { Log } from '../ports/log.ts'

export interface ConnectOptions extends ClientOptions {
  /** Where the client tells of trouble that it deals with by itself. Default: warnings and errors on standard error. */
  readonly log?: Log
}

/** A client of one cluster. Connects when it is first asked for something; `close()` it, or declare it `await using`. */
export class EastGuard extends EastGuardClient {
  constructor(options: ConnectOptions = {}) {
    super(
      { hostLabel: hostname(), ...options },
      {
        streams: nodeStreams,
        clock: systemClock({ keepAlive: true }),
        random: systemRandom(),
        compute: nodeCompute,
        log: options.log ?? standardErrorLog(),
      },
    )
  }
}

function standardErrorLog(): Log {
  return pinoLog({
    level: 'warn',
    text: process.stderr.isTTY,
    write: (line) => process.stderr.write(line),
  })
}

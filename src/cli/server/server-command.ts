// `eastguard server`: runs a broker until a signal ends it. Standard error has its log: text for people on a terminal,
// a JSON object per line otherwise. Exit codes are those of app/exit-codes.ts.

import type { Command } from 'commander'
import {
  EXIT_INTERNAL,
  EXIT_OK,
  EXIT_REMOVED,
  failureCode,
  fatalCode,
  startFailure,
} from '../../app/exit-codes.ts'
import { startLog } from '../../app/log.ts'
import { type LocalServerOptions, startLocalServer } from '../../app/server.ts'
import { packageVersion } from '../../app/version.ts'
import { EastGuardError } from '../../base/errors.ts'
import { addConfigFlags, configFromFlags } from './config-flags.ts'
import { growHeapFreely } from './heap.ts'

type Env = Readonly<Record<string, string | undefined>>
/** What no flag says. */
type Special = Pick<LocalServerOptions, 'wrapDisk'>

/** `special` is for tests: see LocalServerOptions. */
export function addServerCommand(program: Command, env: Env, special: Special = {}): void {
  addConfigFlags(program.command('server'))
    .description('run a broker until SIGTERM or SIGINT, which drain it')
    .action(async (options: Readonly<Record<string, unknown>>) => {
      growHeapFreely(process.execArgv)
      process.exit(await serve(options, env, special))
    })
}

/** Resolves with the exit code. */
async function serve(
  options: Readonly<Record<string, unknown>>,
  env: Env,
  special: Special,
): Promise<number> {
  const { config, clusterKeys, warnings } = configFromFlags(options, env)
  const log = startLog(config.logLevel)
  for (const warning of warnings) log.warn(warning)
  let failed = (_error: Error): void => {}
  let removed = (): void => {}
  const ended = new Promise<number>((resolve) => {
    process.once('SIGTERM', () => resolve(EXIT_OK))
    process.once('SIGINT', () => resolve(EXIT_OK))
    failed = (error) => resolve(fatalCode(error))
    removed = () => resolve(EXIT_REMOVED)
  })
  try {
    const broker = await startLocalServer({
      config,
      clusterKeys,
      version: packageVersion(),
      log,
      processMetrics: true,
      hooks: { onFatal: failed, onRemoved: removed },
      stopping: ended,
      ...special,
    })
    const { client, http } = broker
    log.info('the broker is ready', {
      version: packageVersion(),
      native: `${client.host}:${client.port}`,
      http: http === undefined ? 'off' : `${http.host}:${http.port}`,
      dataDir: config.dataDir,
      nodeId: broker.nodeId,
      clusterId: broker.clusterId,
    })
    const code = await ended
    if (code !== EXIT_OK && code !== EXIT_REMOVED) return code
    if (code === EXIT_REMOVED) {
      log.warn(
        'the broker was removed from its cluster for good and holds no shard and no segment any more',
        {
          hint: 'its data directory is of no more use: empty it, and a broker on it joins as a new one',
        },
      )
    }
    log.info('the broker is stopping')
    await broker.stop()
    log.info('the broker has stopped')
    return code
  } catch (error) {
    if (error instanceof EastGuardError && error.code === 'BROKER_STOPPED') {
      log.info(error.message)
      return ended
    }
    const { code, hint } = startFailure(error)
    const what = failureCode(error)
    log.error(`the broker cannot run: ${(error as Error).message}`, {
      ...(what === undefined ? {} : { code: what }),
      ...(hint === '' ? {} : { hint }),
      dataDir: config.dataDir,
    })
    if (code === EXIT_INTERNAL) log.error('this is a bug', { err: error })
    return code
  }
}

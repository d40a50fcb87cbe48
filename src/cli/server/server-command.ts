// `eastguard server`: runs a broker until a signal ends it. Standard error has its log: text for people on a terminal,
// a JSON object per line otherwise. Exit codes are those of app/exit-codes.ts.

import type { Command } from 'commander'
import {
  EXIT_CONFIG,
  EXIT_DATA_DIR,
  EXIT_DISK,
  EXIT_INTERNAL,
  EXIT_LISTEN,
  EXIT_OK,
} from '../../app/exit-codes.ts'
import { startLog } from '../../app/log.ts'
import { startLocalServer } from '../../app/server.ts'
import { packageVersion } from '../../app/version.ts'
import { EastGuardError } from '../../base/errors.ts'
import { addConfigFlags, configFromFlags } from './config-flags.ts'
import { growHeapFreely } from './heap.ts'

type Env = Readonly<Record<string, string | undefined>>

export function addServerCommand(program: Command, env: Env): void {
  addConfigFlags(program.command('server'))
    .description('run a broker until SIGTERM or SIGINT, which drain it')
    .action(async (options: Readonly<Record<string, unknown>>) => {
      growHeapFreely(process.execArgv)
      process.exit(await serve(options, env))
    })
}

/** Resolves with the exit code. */
async function serve(options: Readonly<Record<string, unknown>>, env: Env): Promise<number> {
  const { config, warnings } = configFromFlags(options, env)
  const log = startLog(config.logLevel)
  for (const warning of warnings) log.warn(warning)
  let failed = (): void => {}
  const ended = new Promise<number>((resolve) => {
    process.once('SIGTERM', () => resolve(EXIT_OK))
    process.once('SIGINT', () => resolve(EXIT_OK))
    failed = () => resolve(EXIT_DISK)
  })
  try {
    const broker = await startLocalServer({
      config,
      version: packageVersion(),
      log,
      processMetrics: true,
      hooks: { onFatal: () => failed() },
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
    if (code === EXIT_DISK) return code
    log.info('the broker is stopping')
    await broker.stop()
    log.info('the broker has stopped')
    return code
  } catch (error) {
    const { code, hint } = explained(error)
    log.error(`the broker cannot run: ${(error as Error).message}`, {
      ...(error instanceof EastGuardError ? { code: error.code } : {}),
      ...(hint === '' ? {} : { hint }),
    })
    if (code === EXIT_INTERNAL) log.error('this is a bug', { err: error })
    return code
  }
}

function explained(error: unknown): { readonly code: number; readonly hint: string } {
  if (error instanceof EastGuardError) {
    if (error.code === 'INVALID_CONFIG') return { code: EXIT_CONFIG, hint: error.hint }
    const disk = error.code === 'DISK_FAILED'
    return { code: disk ? EXIT_DISK : EXIT_DATA_DIR, hint: error.hint }
  }
  if (error instanceof Error && error.message.startsWith('cannot listen on')) {
    return { code: EXIT_LISTEN, hint: 'another program uses the port: stop it, or choose another' }
  }
  if (error instanceof Error && error.name === 'DiskError') return { code: EXIT_DATA_DIR, hint: '' }
  return { code: EXIT_INTERNAL, hint: '' }
}

// A broker in somebody else's process: nothing is logged but trouble, nothing is left behind.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pinoLog } from '../io/log/pino-log.ts'
import { loadConfig } from './config/load.ts'
import type { TestBroker, TestBrokerOptions } from './running.ts'
import { startLocalServer } from './server.ts'
import { packageVersion } from './version.ts'

/** Small files and a short drain: a test's broker holds little and stops at once. */
const TEST_CONFIG: Readonly<Record<string, unknown>> = {
  host: '127.0.0.1',
  display_name: 'test',
  wal_file_bytes: '4MiB',
  reserve_bytes: '1MiB',
  drain_timeout_ms: 1000,
  metadata_shards: 8,
  cluster_port: 0,
  data_port: 0,
}

/**
 * Starts a broker on 127.0.0.1. `stop()` (or `await using`) ends it and removes its temporary directory. Rejects with
 * INVALID_CONFIG, DATA_DIR_IN_USE and the like, or an Error that names an address which is taken.
 */
export async function startBroker(options: TestBrokerOptions = {}): Promise<TestBroker> {
  const temporary = options.dataDir === undefined
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'eastguard-')))
  const removeData = async (): Promise<void> => {
    if (temporary) await rm(dataDir, { recursive: true, force: true })
  }
  try {
    const given = {
      ...TEST_CONFIG,
      ...options.config,
      data_dir: dataDir,
      client_port: options.port ?? 0,
      http_port: options.httpPort ?? 0,
    }
    const { config, clusterKeys } = loadConfig({ given })
    const server = await startLocalServer({
      config,
      clusterKeys,
      version: packageVersion(),
      log: pinoLog({ level: 'error', text: true, write: (line) => process.stderr.write(line) }),
      processMetrics: false,
      hooks: { onFatal: (error) => options.onFatal?.(error) },
    })
    const stop = async (): Promise<void> => {
      await server.stop()
      await removeData()
    }
    return {
      address: `${server.client.host}:${server.client.port}`,
      host: server.client.host,
      port: server.client.port,
      httpPort: server.http?.port ?? 0,
      dataDir,
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await removeData()
    throw error
  }
}

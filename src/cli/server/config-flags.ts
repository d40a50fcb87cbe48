// A flag for every configuration key, from the one table, and the way from parsed flags to a loaded configuration.

import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { CONFIG_KEYS, camelKey, flagOf, keySpec } from '../../app/config/key.ts'
import { type LoadedConfig, loadConfig } from '../../app/config/load.ts'

export function addConfigFlags(command: Command): Command {
  command.option(
    '-c, --config <path>',
    'configuration file (eastguard.yaml in the working directory)',
  )
  for (const key of CONFIG_KEYS) {
    const spec = keySpec(key)
    const normal = spec.derived ?? (spec.default === '' ? 'empty' : spec.default)
    command.addOption(new Option(`${flagOf(key)} <${spec.kind}>`, `${spec.what} [${normal}]`))
  }
  return command
}

/** Throws INVALID_CONFIG. */
export function configFromFlags(
  options: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): LoadedConfig {
  const flags: Record<string, string> = {}
  for (const key of CONFIG_KEYS) {
    const value = options[camelKey(key)]
    if (typeof value === 'string') flags[key] = value
  }
  const path = options['config']
  return loadConfig({
    flags,
    env,
    readFile: readIfThere,
    ...(typeof path === 'string' ? { configPath: path } : {}),
  })
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

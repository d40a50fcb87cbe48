// `eastguard config`: what a broker started here would run with, and where each value comes from.

import type { Command } from 'commander'
import {
  CONFIG_KEYS,
  type ConfigKey,
  type ConfigValue,
  camelKey,
  keySpec,
} from '../../app/config/key.ts'
import { describeSource, type LoadedConfig } from '../../app/config/load.ts'
import { configReference } from '../../app/config/reference.ts'
import type { Json, Output } from '../output.ts'
import { addConfigFlags, configFromFlags } from './config-flags.ts'

type Env = Readonly<Record<string, string | undefined>>

export function addConfigCommands(program: Command, output: () => Output, env: Env): void {
  const config = program.command('config').description('look at the configuration')
  addConfigFlags(config.command('show'))
    .description('print every key, its value and where it comes from')
    .action(async (options: Readonly<Record<string, unknown>>) => {
      await show(output(), configFromFlags(options, env))
    })
  addConfigFlags(config.command('check'))
    .description('say whether a broker would start with this configuration')
    .action(async (options: Readonly<Record<string, unknown>>) => {
      const out = output()
      const { warnings } = configFromFlags(options, env)
      if (out.json) await out.document({ valid: true, warnings: [...warnings] })
      else {
        for (const warning of warnings) await out.line(`warning: ${warning}`)
        await out.line('the configuration is valid')
      }
    })
  config
    .command('reference')
    .description('print docs/reference/config.md')
    .action(async () => output().write(configReference()))
}

async function show(out: Output, loaded: LoadedConfig): Promise<void> {
  const values = loaded.config as unknown as Readonly<Record<string, ConfigValue>>
  if (out.json) {
    const keys: Record<string, Json> = {}
    for (const key of CONFIG_KEYS) {
      const { kind, where } = loaded.sources[key]
      keys[key] = { value: maskedValue(key, values[camelKey(key)]) as Json, source: kind, where }
    }
    await out.document(keys)
    return
  }
  await out.table(
    ['key', 'value', 'source'],
    CONFIG_KEYS.map((key) => [
      key,
      showValue(maskedValue(key, values[camelKey(key)])),
      describeSource(loaded.sources[key]),
    ]),
  )
  for (const warning of loaded.warnings) out.note(`warning: ${warning}`)
}

/** Terminals and tickets are no place for secrets. */
function maskedValue(key: ConfigKey, value: ConfigValue | undefined): ConfigValue | undefined {
  return keySpec(key).secret === true && value !== '' ? '********' : value
}

function showValue(value: ConfigValue | undefined): string {
  if (value === undefined) return ''
  return typeof value === 'object' ? value.join(',') : String(value)
}

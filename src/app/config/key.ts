// What the table of keys (keys.ts) is made of, and the names and types that follow from it.

import { KEYS } from './keys.ts'

type KeyKind = 'text' | 'integer' | 'port' | 'size' | 'duration' | 'list' | 'choice'

export interface KeySpec {
  readonly kind: KeyKind
  readonly default: string
  /** Says what an empty default becomes. */
  readonly derived?: string
  /** In bytes for sizes, milliseconds for durations. */
  readonly least?: number
  readonly most?: number
  /** -1, "no limit", is allowed too. */
  readonly unlimited?: true
  readonly choices?: readonly string[]
  /** Never printed and never logged, not even when it is wrong. */
  readonly secret?: true
  readonly section: string
  readonly what: string
  readonly raising?: string
  readonly lowering?: string
}

export type ConfigKey = keyof typeof KEYS

export const CONFIG_KEYS: readonly ConfigKey[] = Object.keys(KEYS) as ConfigKey[]

/** The table with its literal types forgotten. */
export function keySpec(key: ConfigKey): KeySpec {
  return KEYS[key]
}

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : S

type ValueOf<S extends KeySpec> = S extends { readonly choices: readonly (infer C)[] }
  ? C
  : S['kind'] extends 'integer' | 'port' | 'size' | 'duration'
    ? number
    : S['kind'] extends 'list'
      ? readonly string[]
      : string

/** Every key with its value: `data_dir` is `dataDir`. Sizes are bytes, durations milliseconds, -1 is no limit. */
export type ResolvedConfig = {
  readonly [K in ConfigKey as Camel<K>]: ValueOf<(typeof KEYS)[K]>
}

export type ConfigValue = number | string | readonly string[]

export function camelKey(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
export function flagOf(key: string): string {
  return `--${key.replaceAll('_', '-')}`
}
export function variableOf(key: string): string {
  return `EASTGUARD_${key.toUpperCase()}`
}

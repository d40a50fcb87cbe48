// Readers for arguments that commands share. Each throws a UsageError that names the argument and the value.

import { InvalidArgumentError } from 'commander'
import { parseDuration, parseSize } from '../../app/config/values.ts'
import type { PolicyChanges } from '../../client/api.ts'
import { ACKS, TIERS, type TopicPolicy } from '../../model/policy.ts'
import { policyKeyName } from '../../model/policy-keys.ts'
import { UsageError } from '../failure.ts'

export function wholeNumber(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least) {
      throw new InvalidArgumentError(`a whole number of at least ${least} is expected.`)
    }
    return value
  }
}

export function duration(text: string): number {
  const value = parseDuration(text)
  if (value === undefined || value < 0) {
    throw new InvalidArgumentError('a duration such as 500, 30s or 1h is expected.')
  }
  return value
}

export function size(text: string): number {
  const value = parseSize(text)
  if (value === undefined || value < 1) {
    throw new InvalidArgumentError('a size such as 100, 64KiB or 1MiB is expected.')
  }
  return value
}

/** Collects a repeatable option. */
export function collect(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text]
}

const POLICY_READERS: Readonly<Record<keyof PolicyChanges, (text: string) => unknown>> = {
  replicationFactor: plain,
  minInsyncReplicas: plain,
  acksDefault: oneOf(ACKS),
  retentionMs: (text) => parseDuration(text),
  retentionBytes: (text) => parseSize(text),
  segmentBytes: (text) => parseSize(text),
  segmentEntries: plain,
  segmentMs: (text) => parseDuration(text),
  maxMessageBytes: (text) => parseSize(text),
  tier: oneOf(TIERS),
}

function plain(text: string): number | undefined {
  return /^-?\d+$/.test(text) ? Number(text) : undefined
}

function oneOf(choices: readonly string[]): (text: string) => string | undefined {
  return (text) => (choices.includes(text) ? text : undefined)
}

/** A policy's key as people write it. */
export function nameOf(key: string): string {
  return policyKeyName(key as keyof TopicPolicy)
}

/** The names that `--config` takes, as people write them. */
export const POLICY_NAMES: readonly string[] = Object.keys(POLICY_READERS).map(nameOf)

/** `--config retention_ms=7d --config tier=low`; the broker judges whether the values fit together. */
export function policyOf(settings: readonly string[]): PolicyChanges {
  const policy: Record<string, unknown> = {}
  for (const setting of settings) {
    const at = setting.indexOf('=')
    const name = at < 0 ? setting : setting.slice(0, at)
    const entry = Object.entries(POLICY_READERS).find(([key]) => nameOf(key) === name)
    if (at < 0) throw new UsageError(`--config ${setting}: name=value is expected`)
    if (entry === undefined) {
      throw new UsageError(
        `--config ${setting}: there is no '${name}'; use ${POLICY_NAMES.join(', ')}`,
      )
    }
    const [key, read] = entry
    const value = read(setting.slice(at + 1))
    if (value === undefined) {
      throw new UsageError(
        `--config ${setting}: '${setting.slice(at + 1)}' is not a value of ${name}`,
      )
    }
    policy[key] = value
  }
  return policy as PolicyChanges
}

/** The policy with the names that `--config` takes. */
export function policyJson(policy: TopicPolicy): { readonly [key: string]: string | number } {
  return Object.fromEntries(Object.entries(policy).map(([key, value]) => [nameOf(key), value]))
}

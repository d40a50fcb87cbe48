// From what a person wrote to a checked value, by the kind of the key. YAML gives numbers and lists, the command line
// and the environment give text; all of them pass through here.

import { z } from 'zod'
import type { ConfigValue, KeySpec } from './key.ts'

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  tib: 1024 ** 4,
  kb: 1000,
  mb: 1000 ** 2,
  gb: 1000 ** 3,
  tb: 1000 ** 4,
}

const DURATION_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

function withUnit(raw: unknown, units: Readonly<Record<string, number>>): unknown {
  if (typeof raw !== 'string') return raw
  const parts = /^(-?\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(raw.trim())
  const factor = units[parts?.[2]?.toLowerCase() ?? 'none']
  return parts === null || factor === undefined ? raw : Number(parts[1]) * factor
}

/** Bytes of '64MiB', '1GB', '512' or 512; undefined for anything else. */
export function parseSize(raw: string | number): number | undefined {
  const value = withUnit(raw, SIZE_UNITS)
  return Number.isSafeInteger(value) ? (value as number) : undefined
}

/** Milliseconds of '1h', '30s', '1500' or 1500; undefined for anything else. */
export function parseDuration(raw: string | number): number | undefined {
  const value = withUnit(raw, DURATION_UNITS)
  return Number.isSafeInteger(value) ? (value as number) : undefined
}

function numberSchema(spec: KeySpec, units: Readonly<Record<string, number>>, what: string) {
  const least = spec.least ?? 0
  const most = spec.most ?? Number.MAX_SAFE_INTEGER
  const range = most === Number.MAX_SAFE_INTEGER ? `at least ${least}` : `${least} to ${most}`
  const message = `${what}, ${range}${spec.unlimited === true ? ', or -1 for no limit' : ''}`
  return z.preprocess(
    (raw) => withUnit(raw, units),
    z
      .number(message)
      .refine(
        (n) =>
          Number.isSafeInteger(n) &&
          ((n >= least && n <= most) || (spec.unlimited === true && n === -1)),
        message,
      ),
  )
}

function listOf(raw: unknown): unknown {
  if (typeof raw !== 'string') return raw
  return raw
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

function schemaOf(spec: KeySpec): z.ZodType {
  switch (spec.kind) {
    case 'text':
      return z.string('a text').min(1, 'a text that is not empty')
    case 'integer':
      return numberSchema(spec, { '': 1 }, 'a whole number')
    case 'port':
      return numberSchema({ ...spec, least: 0, most: 65_535 }, { '': 1 }, 'a port number')
    case 'size':
      return numberSchema(spec, SIZE_UNITS, 'a size such as 64MiB (a plain number is bytes)')
    case 'duration':
      return numberSchema(
        spec,
        DURATION_UNITS,
        'a duration such as 30s or 1h (a plain number is milliseconds)',
      )
    case 'list':
      return z.preprocess(
        listOf,
        z.array(z.string('a list of texts').min(1, 'a list without empty texts'), 'a list'),
      )
    case 'choice': {
      const choices = spec.choices ?? []
      return z.preprocess(
        (raw) => (typeof raw === 'number' ? String(raw) : raw),
        z.enum(choices as [string, ...string[]], `one of ${choices.join(', ')}`),
      )
    }
  }
}

export type Parsed =
  | { readonly ok: true; readonly value: ConfigValue }
  | { readonly ok: false; readonly expected: string }

export function parseValue(spec: KeySpec, raw: unknown): Parsed {
  const result = schemaOf(spec).safeParse(raw)
  if (result.success) return { ok: true, value: result.data as ConfigValue }
  return { ok: false, expected: result.error.issues[0]?.message ?? 'another value' }
}

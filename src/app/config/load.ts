// The configuration of one start: for each key the value and where it came from.
//
//   command line  >  EASTGUARD_X  >  X (but never HOST)  >  eastguard.yaml or --config  >  defaults
//
// Everything that is wrong is collected and told at once; nothing is guessed and nothing is ignored.

import { hostname } from 'node:os'
import { parse as parseYaml } from 'yaml'
import { ADDRESS_FORM, parseAddress } from '../../base/address.ts'
import { utf8 } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import { minInsyncDefault, type TopicPolicy } from '../../model/policy.ts'
import { checkPolicy } from '../../model/policy-check.ts'
import { isShardCount } from '../../model/shards.ts'
import { HOST_BYTES_MAX, NAME_BYTES_MAX } from '../../model/swim.ts'
import { readClusterKeys } from './cluster-key.ts'
import {
  CONFIG_KEYS,
  type ConfigKey,
  type ConfigValue,
  camelKey,
  flagOf,
  keySpec,
  type ResolvedConfig,
  variableOf,
} from './key.ts'
import { KEYS } from './keys.ts'
import { parseValue } from './values.ts'

export interface ConfigSource {
  readonly kind: 'caller' | 'flag' | 'environment' | 'file' | 'default'
  /** For people: '--client-port', 'EASTGUARD_CLIENT_PORT', the path of the file, 'default'. */
  readonly where: string
}

export interface ConfigInputs {
  /** What a program that embeds a broker gave, by key; stronger than all else. */
  readonly given?: Readonly<Record<string, unknown>>
  /** What the command line gave, by key. */
  readonly flags?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Given by -c/--config: the file must exist. Otherwise eastguard.yaml is read if there is one. */
  readonly configPath?: string
  /** The text of a file; undefined when there is none. */
  readonly readFile?: (path: string) => string | undefined
  /** The name of the machine, for derived defaults. */
  readonly machineName?: string
}

export interface LoadedConfig {
  readonly config: ResolvedConfig
  readonly sources: Readonly<Record<ConfigKey, ConfigSource>>
  /** The first seals, all open. */
  readonly clusterKeys: readonly Uint8Array[]
  /** Sentences that a starting broker logs. */
  readonly warnings: readonly string[]
}

const CONFIG_FILE = 'eastguard.yaml'
/** Variables with our prefix that belong to eg-cli. */
const CLIENT_VARIABLES: ReadonlySet<string> = new Set(['EASTGUARD_SEEDS', 'EASTGUARD_HISTORY'])
/** Too many shells set it to something else. */
const NEVER_BARE: ReadonlySet<string> = new Set(['HOST'])

const DEFAULT_SOURCE: ConfigSource = { kind: 'default', where: 'default' }

interface Given {
  readonly raw: unknown
  readonly source: ConfigSource
}

/** Throws INVALID_CONFIG with one line for everything that is wrong. */
export function loadConfig(inputs: ConfigInputs): LoadedConfig {
  const faults: string[] = []
  const layers = [
    fileLayer(inputs, faults),
    environmentLayer(inputs.env ?? {}, faults),
    keyedLayer(inputs.flags ?? {}, (key) => ({ kind: 'flag', where: flagOf(key) }), faults),
    keyedLayer(inputs.given ?? {}, () => ({ kind: 'caller', where: 'options' }), faults),
  ]
  const values: Record<string, ConfigValue> = {}
  const sources: Record<string, ConfigSource> = {}
  for (const key of CONFIG_KEYS) {
    let given: Given | undefined
    for (const layer of layers) given = layer.get(key) ?? given
    const spec = keySpec(key)
    const source = given?.source ?? DEFAULT_SOURCE
    sources[key] = source
    if (given === undefined && spec.derived !== undefined) continue
    const parsed = parseValue(spec, given === undefined ? spec.default : given.raw)
    if (parsed.ok) values[camelKey(key)] = parsed.value
    else faults.push(badValue(key, given?.raw, source, parsed.expected))
  }
  if (faults.length > 0) throw invalidConfig(faults)
  const config = derive(values, inputs.machineName ?? hostname())
  faults.push(...relationFaults(config))
  const clusterKeys = readClusterKeys(config, inputs.readFile, faults)
  if (faults.length > 0) throw invalidConfig(faults)
  return {
    config,
    sources: sources as Record<ConfigKey, ConfigSource>,
    clusterKeys,
    warnings: warningsOf(config, clusterKeys.length > 0),
  }
}

/** The configuration of a broker inside a program: the defaults, but for the keys (snake_case) that are given. */
export function configOf(given: Readonly<Record<string, unknown>> = {}): ResolvedConfig {
  return loadConfig({ given }).config
}

/** A secret that is wrong may be nearly right: it is not shown either. */
function shown(key: ConfigKey | undefined, raw: unknown): string {
  const secret = key !== undefined && keySpec(key).secret === true
  return secret ? 'not shown' : JSON.stringify(raw)
}

function badValue(key: ConfigKey, raw: unknown, source: ConfigSource, expected: string): string {
  return `${key} is ${shown(key, raw)} (${describeSource(source)}): expected ${expected}`
}

export function describeSource(source: ConfigSource): string {
  switch (source.kind) {
    case 'caller':
      return 'options'
    case 'flag':
      return `command line, ${source.where}`
    case 'environment':
      return `environment, ${source.where}`
    case 'file':
      return `file ${source.where}`
    case 'default':
      return 'default'
  }
}

function invalidConfig(faults: readonly string[]): EastGuardError {
  return new EastGuardError('INVALID_CONFIG', faults.join('\n'), {
    hint: "see docs/reference/config.md; 'eastguard config show' prints every key, value and source",
    detail: { faults },
  })
}

function isKey(name: string): name is ConfigKey {
  return Object.hasOwn(KEYS, name)
}

function keyedLayer(
  values: Readonly<Record<string, unknown>>,
  sourceOf: (key: string) => ConfigSource,
  faults: string[],
): ReadonlyMap<ConfigKey, Given> {
  const layer = new Map<ConfigKey, Given>()
  for (const [key, raw] of Object.entries(values)) {
    if (raw === undefined) continue
    const source = sourceOf(key)
    if (isKey(key)) layer.set(key, { raw, source })
    else faults.push(unknownKey(key, raw, source))
  }
  return layer
}

function environmentLayer(
  env: Readonly<Record<string, string | undefined>>,
  faults: string[],
): ReadonlyMap<ConfigKey, Given> {
  const layer = new Map<ConfigKey, Given>()
  for (const key of CONFIG_KEYS) {
    const bare = key.toUpperCase()
    for (const name of [variableOf(key), bare]) {
      const raw = env[name]
      // An empty variable is how many tools say "not set".
      if (raw === undefined || raw === '' || NEVER_BARE.has(name)) continue
      layer.set(key, { raw, source: { kind: 'environment', where: name } })
      break
    }
  }
  for (const [name, raw] of Object.entries(env)) {
    if (!name.startsWith('EASTGUARD_') || CLIENT_VARIABLES.has(name)) continue
    const key = name.slice('EASTGUARD_'.length).toLowerCase()
    if (!isKey(key)) faults.push(unknownKey(key, raw, { kind: 'environment', where: name }))
  }
  return layer
}

function fileLayer(inputs: ConfigInputs, faults: string[]): ReadonlyMap<ConfigKey, Given> {
  const layer = new Map<ConfigKey, Given>()
  const path = inputs.configPath ?? CONFIG_FILE
  const text = inputs.readFile?.(path)
  if (text === undefined) {
    if (inputs.configPath !== undefined) faults.push(`the file ${path} does not exist (--config)`)
    return layer
  }
  let document: unknown
  try {
    document = parseYaml(text)
  } catch (error) {
    // What follows the first line is a piece of the file, in which there may be secrets.
    const [why] = (error as Error).message.split('\n')
    faults.push(`the file ${path} is not valid YAML: ${why}`)
    return layer
  }
  if (document === null || document === undefined) return layer
  if (typeof document !== 'object' || Array.isArray(document)) {
    faults.push(`the file ${path} must hold keys and values`)
    return layer
  }
  const source: ConfigSource = { kind: 'file', where: path }
  for (const [key, raw] of Object.entries(document)) {
    if (isKey(key)) layer.set(key, { raw, source })
    else faults.push(unknownKey(key, raw, source))
  }
  return layer
}

function unknownKey(key: string, raw: unknown, source: ConfigSource): string {
  const near = CONFIG_KEYS.find((known) => distance(known, key) <= 2)
  const hint = near === undefined ? '' : `; did you mean ${near}?`
  return `${key} is ${shown(near, raw)} (${describeSource(source)}): there is no such key${hint}`
}

/** Levenshtein's distance: how many letters to change, add or remove. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}

const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]', '*'])

function derive(values: Record<string, ConfigValue>, machineName: string): ResolvedConfig {
  const host = values['host'] as string
  return {
    ...values,
    advertiseHost: values['advertiseHost'] ?? (WILDCARDS.has(host) ? machineName : host),
    // A machine's name may be a long one, with its domains; its beginning tells it apart.
    displayName: values['displayName'] ?? machineName.slice(0, NAME_BYTES_MAX),
    hostLabel: values['hostLabel'] ?? machineName.slice(0, NAME_BYTES_MAX),
    rackLabel: values['rackLabel'] ?? '',
    clusterKey: values['clusterKey'] ?? '',
    clusterKeyFile: values['clusterKeyFile'] ?? '',
  } as unknown as ResolvedConfig
}

/** Of a seed that names none. */
export const CLUSTER_PORT_DEFAULT = 2922

function relationFaults(config: ResolvedConfig): string[] {
  const faults: string[] = []
  if (config.unflushedBytesMax >= config.cacheBytes) {
    faults.push(
      `unflushed_bytes_max is ${config.unflushedBytesMax}: it must be less than cache_bytes, ${config.cacheBytes}`,
    )
  }
  if (config.blockBytes > config.unflushedBytesMax) {
    faults.push(
      `block_bytes is ${config.blockBytes}: at most unflushed_bytes_max, ${config.unflushedBytesMax}, is allowed`,
    )
  }
  if (config.defaultMaxMessageBytes + 1024 * 1024 > config.maxFrameBytes) {
    faults.push(
      `default_max_message_bytes is ${config.defaultMaxMessageBytes}: a frame of max_frame_bytes, ${config.maxFrameBytes}, must hold it and 1 MiB more`,
    )
  }
  if (config.connectionBytesMax < config.maxFrameBytes) {
    faults.push(
      `connection_bytes_max is ${config.connectionBytesMax}: at least max_frame_bytes, ${config.maxFrameBytes}, is needed`,
    )
  }
  if (config.replicaAckTimeoutMs >= config.leaseTtlMs) {
    faults.push(
      `replica_ack_timeout_ms is ${config.replicaAckTimeoutMs}: it must be less than lease_ttl_ms, ${config.leaseTtlMs}`,
    )
  }
  if (config.leaseSyncMs * 4 >= config.leaseTtlMs) {
    faults.push(
      `lease_sync_ms is ${config.leaseSyncMs}: it must be less than a quarter of lease_ttl_ms, ${config.leaseTtlMs}`,
    )
  }
  for (const seed of config.joinSeedNodes) {
    if (parseAddress(seed, CLUSTER_PORT_DEFAULT) === undefined) {
      faults.push(`join_seed_nodes has '${seed}': ${ADDRESS_FORM} is needed`)
    }
  }
  if (!isShardCount(config.metadataShards)) {
    faults.push(`metadata_shards is ${config.metadataShards}: it must be a power of two`)
  }
  for (const [key, text, most] of [
    ['display_name', config.displayName, NAME_BYTES_MAX],
    ['host_label', config.hostLabel, NAME_BYTES_MAX],
    ['rack_label', config.rackLabel, NAME_BYTES_MAX],
    ['advertise_host', config.advertiseHost, HOST_BYTES_MAX],
  ] as const) {
    const bytes = utf8(text).length
    if (bytes > most) faults.push(`${key} has ${bytes} bytes: at most ${most} are allowed`)
  }
  const ports = [
    ['client_port', config.clientPort],
    ['cluster_port', config.clusterPort],
    ['data_port', config.dataPort],
    ['http_port', config.httpPort],
  ] as const
  for (const [i, [key, port]] of ports.entries()) {
    for (const [other, same] of ports.slice(i + 1)) {
      if (port !== 0 && port === same) faults.push(`${key} and ${other} are both ${port}`)
    }
  }
  if (config.defaultMinInsyncReplicas > config.defaultReplicationFactor) {
    faults.push(
      `default_min_insync_replicas is ${config.defaultMinInsyncReplicas}: at most default_replication_factor, ${config.defaultReplicationFactor}, is allowed`,
    )
  }
  try {
    checkPolicy(defaultPolicy(config, config.defaultReplicationFactor))
  } catch (error) {
    faults.push(`the defaults of new topics do not fit together: ${(error as Error).message}`)
  }
  return faults
}

/** The policy of a topic whose creator decides nothing but, at most, the number of replicas. */
export function defaultPolicy(config: ResolvedConfig, replicationFactor: number): TopicPolicy {
  return {
    partitions: config.defaultPartitions,
    rangeMode: 'auto',
    ranges: 1,
    replicationFactor,
    minInsyncReplicas:
      config.defaultMinInsyncReplicas === 0
        ? minInsyncDefault(replicationFactor)
        : Math.min(config.defaultMinInsyncReplicas, replicationFactor),
    acksDefault: config.defaultAcks,
    retentionMs: config.defaultRetentionMs,
    retentionBytes: config.defaultRetentionBytes,
    segmentBytes: config.defaultSegmentBytes,
    segmentEntries: config.defaultSegmentEntries,
    segmentMs: config.defaultSegmentMs,
    maxMessageBytes: config.defaultMaxMessageBytes,
    tier: 'standard',
  }
}

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|\[::1\]|localhost)$/

function warningsOf(config: ResolvedConfig, hasClusterKey: boolean): string[] {
  if (LOOPBACK.test(config.host)) return []
  const warnings = [
    `host is ${config.host}: other machines can connect, and there is no authentication yet. Use a firewall, or host 127.0.0.1.`,
  ]
  if (!hasClusterKey) {
    warnings.push(
      `host is ${config.host}, and there is no cluster key: whoever reaches cluster_port or data_port can pose as a broker, and what brokers say to one another can be read. Set cluster_key_file on all brokers.`,
    )
  }
  return warnings
}

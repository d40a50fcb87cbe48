import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CONFIG_KEYS, keySpec } from '../../../src/app/config/key.ts'
import { type ConfigInputs, configOf, loadConfig } from '../../../src/app/config/load.ts'
import { parseDuration, parseSize } from '../../../src/app/config/values.ts'
import { EastGuardError } from '../../../src/base/errors.ts'
import { SHARDS_MAX } from '../../../src/model/swim.ts'

function faultOf(inputs: ConfigInputs): string {
  try {
    loadConfig(inputs)
  } catch (error) {
    assert.ok(error instanceof EastGuardError)
    assert.equal(error.code, 'INVALID_CONFIG')
    return error.message
  }
  assert.fail('the configuration was accepted')
}

const yaml = (text: string) => (path: string) => (path === 'eastguard.yaml' ? text : undefined)

test('without any source every key has its default', () => {
  const { config, sources, warnings } = loadConfig({ machineName: 'box' })
  assert.equal(config.dataDir, './data')
  assert.equal(config.clientPort, 2921)
  assert.equal(config.walFileBytes, 64 * 1024 * 1024)
  assert.equal(config.defaultRetentionMs, 7 * 24 * 3600 * 1000)
  assert.equal(config.defaultRetentionBytes, -1)
  assert.deepEqual(config.joinSeedNodes, [])
  assert.equal(config.advertiseHost, '127.0.0.1')
  assert.equal(config.hostLabel, 'box')
  assert.deepEqual(warnings, [])
  for (const key of CONFIG_KEYS) assert.equal(sources[key].kind, 'default')
})

test('for any set of sources the strongest one that speaks wins', () => {
  const sources = fc.record({
    flag: fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined }),
    prefixed: fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined }),
    bare: fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined }),
    file: fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined }),
  })
  fc.assert(
    fc.property(sources, ({ flag, prefixed, bare, file }) => {
      const { config, sources } = loadConfig({
        flags: flag === undefined ? {} : { cluster_port: String(flag) },
        env: { EASTGUARD_CLUSTER_PORT: prefixed?.toString(), CLUSTER_PORT: bare?.toString() },
        readFile: yaml(file === undefined ? '' : `cluster_port: ${file}`),
      })
      assert.equal(config.clusterPort, flag ?? prefixed ?? bare ?? file ?? 2922)
      const where =
        flag !== undefined
          ? '--cluster-port'
          : prefixed !== undefined
            ? 'EASTGUARD_CLUSTER_PORT'
            : bare !== undefined
              ? 'CLUSTER_PORT'
              : file !== undefined
                ? 'eastguard.yaml'
                : 'default'
      assert.equal(sources.cluster_port.where, where)
    }),
  )
})

test('bare HOST is not read, EASTGUARD_HOST is', () => {
  assert.equal(loadConfig({ env: { HOST: 'shell' } }).config.host, '127.0.0.1')
  assert.equal(loadConfig({ env: { EASTGUARD_HOST: '::1' } }).config.host, '::1')
})

test('the file of the specification is understood', () => {
  const { config, warnings } = loadConfig({
    readFile: yaml(
      'client_port: 2921\ncluster_port: 2922\ndata_port: 2923\nhost: "0.0.0.0"\nadvertise_host: "127.0.0.1"\nvnodes_per_node: 256\njoin_seed_nodes:\n  - "127.0.0.1:2922"\n',
    ),
  })
  assert.deepEqual(config.joinSeedNodes, ['127.0.0.1:2922'])
  assert.equal(config.advertiseHost, '127.0.0.1')
  assert.match(warnings.join(), /no authentication/)
})

test('a wildcard host is advertised by the name of the machine', () => {
  const { config } = loadConfig({ flags: { host: '0.0.0.0' }, machineName: 'box' })
  assert.equal(config.advertiseHost, 'box')
})

test('an unknown key names key, value and source, and what was perhaps meant', () => {
  assert.match(
    faultOf({ readFile: yaml('clientport: 3000') }),
    /clientport is 3000 \(file eastguard.yaml\).*did you mean client_port/,
  )
  assert.match(
    faultOf({ env: { EASTGUARD_CLIENT_PROT: '3000' } }),
    /client_prot is "3000" \(environment, EASTGUARD_CLIENT_PROT\)/,
  )
  assert.match(faultOf({ flags: { nonsense: 'x' } }), /--nonsense/)
})

test('a bad value names key, value, source and what is allowed; all faults are told at once', () => {
  const message = faultOf({
    flags: { client_port: '70000' },
    env: { WAL_FILE_BYTES: 'plenty', EASTGUARD_LOG_LEVEL: 'loud' },
    readFile: yaml('cache_bytes: null\nhost: 5'),
  })
  assert.match(message, /client_port is "70000" \(command line, --client-port\): .*0 to 65535/)
  assert.match(message, /wal_file_bytes is "plenty" \(environment, WAL_FILE_BYTES\)/)
  assert.match(message, /log_level is "loud" .*debug, info, warn, error/)
  assert.match(message, /cache_bytes is null \(file eastguard.yaml\)/)
  assert.match(message, /host is 5/)
})

test('a seed that is no address names what one is, and the port that is none', () => {
  for (const seed of ['127.0.0.1:99999', '127.0.0.1:0', 'a:b:c']) {
    const message = faultOf({ flags: { join_seed_nodes: seed } })
    assert.ok(message.includes(`'${seed}'`), message)
    assert.match(message, /host:port with a port from 1 to 65535 is needed/)
  }
})

test('a file that was asked for must exist and be a mapping', () => {
  assert.match(faultOf({ configPath: 'no.yaml', readFile: () => undefined }), /no.yaml does not/)
  assert.match(faultOf({ readFile: yaml('- a\n- b') }), /keys and values/)
  assert.match(faultOf({ readFile: yaml('a: [') }), /not valid YAML/)
})

test('the metadata may be divided into as many shards as a cluster can name, and no more', () => {
  const { config } = loadConfig({ flags: { metadata_shards: String(SHARDS_MAX) } })
  assert.equal(config.metadataShards, SHARDS_MAX)
  assert.match(faultOf({ flags: { metadata_shards: String(2 * SHARDS_MAX) } }), /metadata_shards/)
})

test('names are as short as brokers tell them to one another', () => {
  const long = 'ä'.repeat(33)
  for (const key of ['display_name', 'host_label'] as const) {
    assert.match(faultOf({ flags: { [key]: long } }), new RegExp(`${key} has 66 bytes: at most 64`))
  }
  assert.match(faultOf({ flags: { advertise_host: 'h'.repeat(254) } }), /advertise_host has 254/)
  const { config } = loadConfig({ machineName: 'm'.repeat(100) })
  assert.equal(config.displayName, 'm'.repeat(64))
  assert.equal(config.hostLabel, config.displayName)
})

test('values that contradict one another are refused', () => {
  assert.match(faultOf({ flags: { unflushed_bytes_max: '256MiB' } }), /less than cache_bytes/)
  assert.match(faultOf({ flags: { http_port: '2921' } }), /both 2921/)
  assert.match(faultOf({ flags: { default_min_insync_replicas: '5' } }), /at most/)
  assert.match(faultOf({ flags: { lease_ttl_ms: '750' } }), /replica_ack_timeout_ms is 750: .*750/)
  assert.match(faultOf({ flags: { lease_sync_ms: '500' } }), /a quarter of lease_ttl_ms, 2000/)
  assert.throws(() => configOf({ block_bytes: 2 ** 28 }), { code: 'INVALID_CONFIG' })
})

test('sizes and durations are read in the forms that people write', () => {
  assert.deepEqual(
    ['64MiB', '1GB', '512', '1.5KiB', '-1', 7].map(parseSize),
    [67_108_864, 1_000_000_000, 512, 1536, -1, 7],
  )
  assert.deepEqual(
    ['1h', '30s', '250ms', '2min', '7d', '10'].map(parseDuration),
    [3_600_000, 30_000, 250, 120_000, 604_800_000, 10],
  )
  for (const bad of ['', 'MiB', '1 parsec', '0.3', '1e400']) {
    assert.equal(parseSize(bad), undefined)
    assert.equal(parseDuration(bad), undefined)
  }
})

test('what a key is given is what it holds, for every number key and every allowed number', () => {
  for (const key of CONFIG_KEYS) {
    const { kind, unlimited } = keySpec(key)
    if (kind !== 'size' && kind !== 'duration') continue
    if (unlimited === true) loadConfig({ flags: { [key]: '-1' } })
    else assert.match(faultOf({ flags: { [key]: '-1' } }), new RegExp(`^${key} is "-1"`))
  }
})

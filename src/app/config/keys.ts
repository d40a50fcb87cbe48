// Every configuration key, once. The readers, `--help`, `eastguard config show` and docs/reference/config.md all
// follow from this table, so a key cannot exist in one place and not in another.
//
// A default is written as a person would write it in eastguard.yaml ('64MiB', '7d') and goes through the same parser
// as theirs. A default of '' means that it is derived when the configuration is loaded; `derived` says from what.
// Only literals stand here: the type of the resolved configuration is computed from the table.

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

export const KEYS = {
  data_dir: {
    kind: 'text',
    default: './data',
    section: 'Identity and place',
    what: 'The directory that holds everything the broker keeps: its identity, the write-ahead log, metadata and topics. One process at a time may use it.',
  },
  host: {
    kind: 'text',
    default: '127.0.0.1',
    section: 'Identity and place',
    what: 'The address that all listeners bind. Anything but a loopback address lets other machines in; there is no authentication yet, so the broker warns.',
  },
  advertise_host: {
    kind: 'text',
    default: '',
    derived: 'host, or the name of the machine when host is a wildcard such as 0.0.0.0',
    section: 'Identity and place',
    what: 'The name or address by which clients and other brokers reach this one.',
  },
  display_name: {
    kind: 'text',
    default: '',
    derived: 'the name of the machine',
    section: 'Identity and place',
    what: 'What people see in listings. It identifies nothing: the node id in the data directory does.',
  },
  host_label: {
    kind: 'text',
    default: '',
    derived: 'the name of the machine',
    section: 'Identity and place',
    what: 'Brokers with the same label are taken to fail together, so what is kept more than once is kept on different ones.',
  },
  client_port: {
    kind: 'port',
    default: '2921',
    section: 'Ports',
    what: 'The port of the native protocol: the SDK and eg-cli connect here. 0 chooses a free one.',
  },
  cluster_port: {
    kind: 'port',
    default: '2922',
    section: 'Ports',
    what: 'The port on which brokers find one another and keep metadata (UDP and TCP). 0 chooses a free one.',
  },
  data_port: {
    kind: 'port',
    default: '2923',
    section: 'Ports',
    what: 'The port on which brokers replicate data. Used by clustering.',
  },
  http_port: {
    kind: 'port',
    default: '2924',
    section: 'Ports',
    what: 'The port of /healthz, /readyz and /metrics. 0 chooses a free one.',
  },
  join_seed_nodes: {
    kind: 'list',
    default: '',
    section: 'Cluster',
    what: 'Cluster addresses (host:port) of brokers to join through. Its own address among them does not count. Empty: this broker founds a cluster.',
  },
  cluster_key: {
    kind: 'text',
    default: '',
    derived: 'none',
    secret: true,
    section: 'Cluster',
    what: 'A secret of 16 characters or more, the same on all brokers: what they say to one another is then encrypted, and only those that have it are let in. None: it goes in the clear. Better in a file, see cluster_key_file: other users of a machine can see command lines.',
  },
  cluster_key_file: {
    kind: 'text',
    default: '',
    derived: 'none',
    section: 'Cluster',
    what: 'A file that holds the cluster key, in a line of its own. With several lines, each of them a key, the first encrypts and all are understood, so that a key can be changed while the cluster runs: docs/operate/cluster-key.md.',
  },
  vnodes_per_node: {
    kind: 'integer',
    default: '256',
    least: 1,
    most: 4096,
    section: 'Cluster',
    what: 'Tokens of each broker on the consistent-hash ring that says which brokers keep which metadata. The same on all brokers.',
    raising: 'spreads shards more evenly; the ring takes more memory and is slower to rebuild',
    lowering: 'makes the ring smaller and the spread less even',
  },
  rack_label: {
    kind: 'text',
    default: '',
    derived: 'none',
    section: 'Cluster',
    what: 'Brokers with the same label stand in one rack and fail together; what is kept more than once is kept in different ones, as far as there are any.',
  },
  metadata_replication_factor: {
    kind: 'integer',
    default: '3',
    least: 1,
    most: 7,
    section: 'Cluster',
    what: 'Brokers that keep each part of the metadata, when there are so many. The same on all brokers.',
    raising: 'survives the loss of more brokers; each change waits for more of them',
    lowering: 'makes changes of metadata cheaper; fewer brokers may be lost',
  },
  metadata_shards: {
    kind: 'integer',
    default: '256',
    least: 1,
    most: 4096,
    section: 'Cluster',
    what: 'Parts that the metadata is divided into, each kept by a few brokers. A power of two. It counts when a cluster is founded and never changes.',
    raising:
      'lets more brokers share the work on metadata; each part takes memory and a little processor',
    lowering: 'makes brokers lighter; metadata spreads over fewer of them',
  },
  default_partitions: {
    kind: 'integer',
    default: '64',
    least: 1,
    most: 100_000,
    section: 'Defaults of new topics',
    what: 'Partitions of a topic whose creator names no number. A topic can be given more later, never fewer.',
    raising: 'lets more consumers share a topic; smaller batches for the same load',
    lowering: 'makes larger batches; fewer consumers can share a topic',
  },
  default_replication_factor: {
    kind: 'integer',
    default: '3',
    least: 1,
    most: 7,
    section: 'Defaults of new topics',
    what: 'Replicas of a topic whose creator names no number; fewer when fewer are possible. Brokers do not replicate records yet: there is one.',
    raising: 'survives the loss of more brokers; each record is written more often',
    lowering: 'writes less; fewer losses are survived',
  },
  default_min_insync_replicas: {
    kind: 'integer',
    default: '0',
    least: 0,
    most: 7,
    section: 'Defaults of new topics',
    what: 'The fewest replicas that may acknowledge a write. 0: one less than the replication factor, and at least 1.',
    raising: 'an acknowledged write has more copies; writing stops sooner when brokers fail',
    lowering: 'writing goes on with fewer brokers; an acknowledged write has fewer copies',
  },
  default_acks: {
    kind: 'choice',
    default: 'all',
    choices: ['0', '1', 'all'],
    section: 'Defaults of new topics',
    what: 'What a producer that does not say waits for: nothing (0), the leader (1) or every replica (all).',
  },
  default_retention_ms: {
    kind: 'duration',
    default: '7d',
    least: 1000,
    unlimited: true,
    section: 'Defaults of new topics',
    what: 'Sealed segments whose newest record is older are removed. -1: kept for ever.',
    raising: 'keeps history longer; takes more disk',
    lowering: 'frees disk sooner; slow consumers may miss records',
  },
  default_retention_bytes: {
    kind: 'size',
    default: '-1',
    least: 1_048_576,
    unlimited: true,
    section: 'Defaults of new topics',
    what: 'Above so many bytes of a topic (counted once, not per replica) the oldest sealed segments are removed. -1: no limit.',
    raising: 'keeps more history; takes more disk',
    lowering: 'frees disk sooner; slow consumers may miss records',
  },
  default_segment_bytes: {
    kind: 'size',
    default: '1GiB',
    least: 65_536,
    most: 17_179_869_184,
    section: 'Defaults of new topics',
    what: 'A segment that has grown so large is sealed and the next one opened.',
    raising: 'makes fewer files and rolls; retention frees disk in larger steps',
    lowering: 'makes retention and placement finer; more files and more rolls',
  },
  default_segment_entries: {
    kind: 'integer',
    default: '1000000',
    least: 1,
    most: 100_000_000,
    section: 'Defaults of new topics',
    what: 'A segment with so many entries (batches) is sealed and the next one opened.',
    raising: 'makes fewer rolls; a restart reads more of the open segment',
    lowering: 'shortens a restart; more files and more rolls',
  },
  default_segment_ms: {
    kind: 'duration',
    default: '1h',
    least: 1000,
    most: 31_536_000_000,
    section: 'Defaults of new topics',
    what: 'A segment whose first entry is so old is sealed and the next one opened.',
    raising: 'makes fewer small files on quiet topics; retention by time is coarser',
    lowering: 'makes retention by time finer; more files on quiet topics',
  },
  default_max_message_bytes: {
    kind: 'size',
    default: '1MiB',
    least: 1024,
    most: 67_108_864,
    section: 'Defaults of new topics',
    what: 'The largest batch that a topic takes, compressed as it is sent.',
    raising: 'lets producers send larger batches; a request can hold more memory',
    lowering: 'bounds memory per request; large records are refused',
  },
  wal_file_bytes: {
    kind: 'size',
    default: '64MiB',
    least: 1_048_576,
    most: 1_073_741_824,
    section: 'Write-ahead log',
    what: 'The size of one file of the write-ahead log. Files are taken from the disk whole and used again.',
    raising: 'changes files less often; each takes longer to prepare and holds more disk',
    lowering: 'holds less disk; files change more often under load',
  },
  wal_files_max: {
    kind: 'integer',
    default: '16',
    least: 3,
    most: 10_000,
    section: 'Write-ahead log',
    what: 'With so many files in use, segments are flushed to free the oldest before more is written.',
    raising: 'lets bursts run longer before flushing; takes more disk and a restart replays more',
    lowering: 'shortens a restart; bursts meet back-pressure sooner',
  },
  cache_bytes: {
    kind: 'size',
    default: '64MiB',
    least: 4_194_304,
    most: 1_099_511_627_776,
    section: 'Memory and flushing',
    what: 'Memory for the recent tail of all segments, from which consumers at the tail are served.',
    raising: 'lets consumers fall further behind before they read the disk; takes memory',
    lowering: 'saves memory; slower consumers read the disk',
  },
  unflushed_bytes_max: {
    kind: 'size',
    default: '32MiB',
    least: 1_048_576,
    most: 1_099_511_627_776,
    section: 'Memory and flushing',
    what: 'With so many bytes not yet in segment files, producers wait. Less than cache_bytes.',
    raising: 'rides out longer stalls of the disk; leaves less of the cache to readers',
    lowering: 'leaves more of the cache to readers; producers wait sooner',
  },
  block_bytes: {
    kind: 'size',
    default: '4MiB',
    least: 65_536,
    most: 268_435_456,
    section: 'Memory and flushing',
    what: 'Segment files are written in blocks of about this size, in which the entries of one partition lie together.',
    raising: 'reading one partition of a wide range skips less; more waits unflushed',
    lowering: 'less waits unflushed; reading one partition of a wide range reads more in between',
  },
  flush_age_ms: {
    kind: 'duration',
    default: '10s',
    least: 10,
    most: 3_600_000,
    section: 'Memory and flushing',
    what: 'Entries that have waited so long are written to their segment file in a smaller block.',
    raising: 'makes larger blocks on quiet topics; the write-ahead log is held longer',
    lowering: 'frees the write-ahead log sooner; smaller blocks on quiet topics',
  },
  reserve_bytes: {
    kind: 'size',
    default: '256MiB',
    least: 1_048_576,
    most: 1_099_511_627_776,
    section: 'Memory and flushing',
    what: 'With less free disk than this, writes are refused with STORAGE_FULL; reading goes on and writing resumes by itself.',
    raising: 'leaves more room for metadata, flushing and repair; less disk for data',
    lowering: 'uses more of the disk; less room to get out of a full one',
  },
  max_frame_bytes: {
    kind: 'size',
    default: '72MiB',
    least: 2_097_152,
    most: 75_497_472,
    section: 'Connections',
    what: 'The largest frame that is taken from a client. A larger one is answered with FRAME_TOO_LARGE and its connection closed.',
    raising: 'lets requests carry more batches; one client can hold more memory',
    lowering: 'bounds the memory of one client; large requests are refused',
  },
  connections_max: {
    kind: 'integer',
    default: '4096',
    least: 1,
    most: 1_000_000,
    section: 'Connections',
    what: 'Clients connected at once; more are closed at once. The limit of open files must allow for it.',
    raising: 'serves more clients; takes more memory and files',
    lowering: 'bounds memory and files; clients may be turned away',
  },
  requests_in_flight_max: {
    kind: 'integer',
    default: '10000',
    least: 1,
    most: 10_000,
    section: 'Connections',
    what: 'Requests of one connection that wait for their answer; above it the broker stops reading from the connection.',
    raising: 'keeps a distant client busy; takes more memory per connection',
    lowering: 'bounds memory per connection; a distant client gets slower',
  },
  connection_bytes_max: {
    kind: 'size',
    default: '80MiB',
    least: 4_194_304,
    most: 1_099_511_627_776,
    section: 'Connections',
    what: 'Bytes of requests of one connection that wait for their answer; above it the broker stops reading from the connection.',
    raising: 'lets one client send more before it is held back; takes more memory',
    lowering: 'bounds memory per connection; a fast client is held back sooner',
  },
  answer_bytes_max: {
    kind: 'size',
    default: '16MiB',
    least: 65_536,
    most: 1_099_511_627_776,
    section: 'Connections',
    what: 'Bytes of answers that wait for a client to read them; above it nothing more is taken from that client.',
    raising: 'tolerates bursts to slow clients; takes more memory',
    lowering: 'bounds memory per connection; slow clients are held back sooner',
  },
  hello_timeout_ms: {
    kind: 'duration',
    default: '10s',
    least: 10,
    most: 3_600_000,
    section: 'Connections',
    what: 'A connection that has not said hello by then is closed.',
    raising: 'tolerates slower networks; silent connections hold their place longer',
    lowering: 'frees the place of silent connections sooner',
  },
  frame_timeout_ms: {
    kind: 'duration',
    default: '30s',
    least: 10,
    most: 3_600_000,
    section: 'Connections',
    what: 'A frame that was begun and is not complete by then closes its connection. An idle connection may stay.',
    raising: 'tolerates slower networks; unfinished frames hold memory longer',
    lowering: 'frees the memory of unfinished frames sooner; slow networks may fail',
  },
  answer_timeout_ms: {
    kind: 'duration',
    default: '30s',
    least: 10,
    most: 3_600_000,
    section: 'Connections',
    what: 'A client that has not read its answers for so long, with answer_bytes_max waiting, is disconnected.',
    raising: 'is more patient with stuck clients; they hold memory longer',
    lowering: 'frees the memory of stuck clients sooner',
  },
  retention_check_ms: {
    kind: 'duration',
    default: '30s',
    least: 100,
    most: 86_400_000,
    section: 'Upkeep',
    what: 'How often segments past their retention are looked for.',
    raising: 'costs less on brokers with many segments; disk is freed later',
    lowering: 'frees disk sooner; costs more on brokers with many segments',
  },
  producer_id_expiry_ms: {
    kind: 'duration',
    default: '7d',
    least: 1000,
    most: 31_536_000_000,
    section: 'Upkeep',
    what: 'An idempotent producer that has written nothing to a partition for so long is forgotten there.',
    raising: 'recognises later retries; keeps the state of more producers',
    lowering: 'keeps less state; a producer idle for longer must begin a new epoch',
  },
  drain_timeout_ms: {
    kind: 'duration',
    default: '10s',
    least: 0,
    most: 3_600_000,
    section: 'Upkeep',
    what: 'On SIGTERM or SIGINT, how long requests in flight may take to finish before the broker stops.',
    raising: 'lets more work finish; a stop may take longer',
    lowering: 'stops sooner; clients may have to retry',
  },
  log_level: {
    kind: 'choice',
    default: 'info',
    choices: ['debug', 'info', 'warn', 'error'],
    section: 'Upkeep',
    what: 'The least level of log lines that are written to standard error.',
  },
} as const

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

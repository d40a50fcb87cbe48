// Every error that a client can be told, once. The number travels in the native protocol and never
// changes its meaning; the text is what people read; `retriable` says that the same request may
// succeed later. docs/reference/errors.md lists them all (a tidy test compares).

export interface ErrorKind {
  readonly number: number
  readonly retriable: boolean
  readonly meaning: string
  /** What to do about it. */
  readonly hint: string
}

export const ERRORS = {
  // The connection and its frames.
  FRAME_TOO_LARGE: {
    number: 1,
    retriable: false,
    meaning: 'a frame is larger than the broker takes',
    hint: 'send smaller batches, or raise max_frame_bytes',
  },
  MALFORMED_REQUEST: {
    number: 2,
    retriable: false,
    meaning: 'a request could not be decoded',
    hint: 'the client and the protocol reference disagree',
  },
  UNSUPPORTED_VERSION: {
    number: 3,
    retriable: false,
    meaning: 'no protocol version is spoken by both sides',
    hint: 'upgrade the older side',
  },
  UNKNOWN_OPERATION: {
    number: 4,
    retriable: false,
    meaning: 'the broker does not know this operation',
    hint: 'upgrade the broker, or do not use it',
  },
  HELLO_REQUIRED: {
    number: 5,
    retriable: false,
    meaning: 'the first request of a connection must be a hello',
    hint: 'send a hello first',
  },
  CLUSTER_MISMATCH: {
    number: 6,
    retriable: false,
    meaning: 'the broker belongs to another cluster',
    hint: 'check the addresses that you connect to',
  },
  TOO_MANY_REQUESTS: {
    number: 7,
    retriable: true,
    meaning: 'too many requests are in flight on one connection',
    hint: 'wait for answers before sending more',
  },
  // Topics.
  TOPIC_EXISTS: {
    number: 20,
    retriable: false,
    meaning: 'a topic of this name exists',
    hint: 'use another name, or --if-not-exists for an equal policy',
  },
  UNKNOWN_TOPIC: {
    number: 21,
    retriable: false,
    meaning: 'there is no topic of this name or id',
    hint: 'create it first, or check the name',
  },
  INVALID_TOPIC_NAME: {
    number: 22,
    retriable: false,
    meaning: 'the topic name is not allowed',
    hint: 'use 1 to 249 of A-Z a-z 0-9 . _ - and neither . nor ..',
  },
  INVALID_POLICY: {
    number: 23,
    retriable: false,
    meaning: 'the topic policy is not allowed',
    hint: 'see docs/reference/topics.md for the bounds',
  },
  NOT_ENOUGH_BROKERS: {
    number: 24,
    retriable: false,
    meaning: 'fewer brokers are alive than replicas are asked for',
    hint: 'ask for fewer replicas, or start more brokers',
  },
  UNKNOWN_PARTITION: {
    number: 25,
    retriable: false,
    meaning: 'the topic has no such partition',
    hint: 'partitions are numbered from 0; describe-topic shows how many',
  },
  TOPIC_PROTECTED: {
    number: 26,
    retriable: false,
    meaning: 'system topics cannot be changed this way',
    hint: 'use a topic of your own',
  },
  METADATA_CONFLICT: {
    number: 27,
    retriable: true,
    meaning: 'the metadata changed in the meantime',
    hint: 'look again and retry',
  },
  RANGE_FIXED: {
    number: 28,
    retriable: false,
    meaning: 'a range cannot be split or merged so',
    hint: 'only ranges of a topic in mode auto change: at a partition inside one, or two neighbours into one',
  },
  METADATA_UNAVAILABLE: {
    number: 29,
    retriable: true,
    meaning: 'the brokers that keep a part of the metadata cannot be reached, or too few of them',
    hint: 'see that most of the brokers run and reach one another, then try again',
  },
  UNKNOWN_BROKER: {
    number: 30,
    retriable: false,
    meaning: 'there is no such broker in the cluster',
    hint: 'describe-cluster lists the brokers',
  },
  END_NOT_FORCED: {
    number: 31,
    retriable: false,
    meaning: 'no end of this segment has to be forced, or none at this place',
    hint: 'describe-cluster says which ranges cannot be written, and why; force-end asks only for those that nobody else can end',
  },
  // Writing.
  BATCH_TOO_LARGE: {
    number: 40,
    retriable: false,
    meaning: "a batch is larger than the topic's max_message_bytes",
    hint: 'send smaller batches, or alter the topic',
  },
  CORRUPT_BATCH: {
    number: 41,
    retriable: false,
    meaning: 'a batch does not match its checksum, its length or its record count',
    hint: 'the bytes were damaged or the client is at fault',
  },
  UNSUPPORTED_BATCH: {
    number: 42,
    retriable: false,
    meaning: 'a batch has a format, codec or attribute that is not taken',
    hint: 'send record batches v2 with a known codec and no transaction',
  },
  NOT_ENOUGH_REPLICAS: {
    number: 43,
    retriable: true,
    meaning: 'fewer replicas are in sync than min_insync_replicas',
    hint: 'wait for brokers to return',
  },
  STORAGE_FULL: {
    number: 44,
    retriable: true,
    meaning: "the broker's disk is full",
    hint: 'free space; writing resumes by itself',
  },
  DUPLICATE_SEQUENCE: {
    number: 45,
    retriable: false,
    meaning: 'the batch was stored earlier, too long ago to know where',
    hint: 'it is stored; nothing to do',
  },
  OUT_OF_ORDER_SEQUENCE: {
    number: 46,
    retriable: false,
    meaning: 'a batch before this one is missing',
    hint: 'the producer must begin a new epoch',
  },
  UNKNOWN_PRODUCER_ID: {
    number: 47,
    retriable: false,
    meaning: 'the producer id has expired',
    hint: 'the producer must begin a new epoch',
  },
  PRODUCER_FENCED: {
    number: 48,
    retriable: false,
    meaning: 'a newer epoch of this producer id exists',
    hint: 'only one producer may use an id',
  },
  INVALID_ACKS: {
    number: 49,
    retriable: false,
    meaning: 'acks is none of 0, 1 and all',
    hint: 'use 0, 1 or all',
  },
  // Reading.
  OFFSET_OUT_OF_RANGE: {
    number: 60,
    retriable: false,
    meaning: 'the offset is before the start or past the end',
    hint: 'start from earliest, latest or a timestamp',
  },
  DAMAGED: {
    number: 61,
    retriable: false,
    meaning: 'what was asked for is damaged on disk',
    hint: 'see the broker log and docs/operate/damage.md',
  },
  RECORDS_LOST: {
    number: 62,
    retriable: false,
    meaning: 'the records at this offset were lost, and an operator has accepted that',
    hint: 'go on at the offset that the message names',
  },
  NOT_REPLICA: {
    number: 63,
    retriable: true,
    meaning:
      'this broker does not hold what was to be read, or has not heard of its leader for too long',
    hint: 'go to one of the addresses given',
  },
  // Availability and time.
  NOT_READY: {
    number: 80,
    retriable: true,
    meaning: 'the broker is starting or stopping',
    hint: 'retry in a moment',
  },
  NOT_LEADER: {
    number: 81,
    retriable: true,
    meaning: 'another broker leads here',
    hint: 'go to the address given',
  },
  TIMEOUT: {
    number: 82,
    retriable: true,
    meaning: 'the deadline passed before the answer',
    hint: 'retry, or allow more time',
  },
  BROKER_STOPPED: {
    number: 83,
    retriable: true,
    meaning: 'the broker stopped',
    hint: 'retry when it is back',
  },
  INTERNAL: {
    number: 84,
    retriable: false,
    meaning: 'the broker made a mistake',
    hint: 'please report this with the broker log',
  },
  // The client's own.
  CONNECTION_FAILED: {
    number: 100,
    retriable: true,
    meaning: 'no connection to the broker',
    hint: 'check that it runs and that the address is right',
  },
  CONNECTION_LOST: {
    number: 101,
    retriable: true,
    meaning: 'the connection was lost before the answer',
    hint: 'retry',
  },
  ABORTED: { number: 102, retriable: false, meaning: 'the caller aborted', hint: '' },
  CLOSED: {
    number: 103,
    retriable: false,
    meaning: 'the client, producer or consumer is closed',
    hint: 'make a new one',
  },
  INVALID_ARGUMENT: {
    number: 104,
    retriable: false,
    meaning: 'an argument is not allowed',
    hint: '',
  },
  RECORD_TOO_LARGE: {
    number: 105,
    retriable: false,
    meaning: 'one record is larger than a batch may be',
    hint: 'make it smaller, or raise maxBatchBytes and max_message_bytes',
  },
  DECODE_FAILED: {
    number: 106,
    retriable: false,
    meaning: 'bytes could not be decoded',
    hint: 'they were damaged, or a codec is missing',
  },
  BUFFER_FULL: {
    number: 107,
    retriable: true,
    meaning: "too many records wait for the producer's buffer",
    hint: 'await send() more often, or raise bufferBytes',
  },
  // The broker's own: start-up and configuration.
  INVALID_CONFIG: {
    number: 120,
    retriable: false,
    meaning: 'the configuration is not valid',
    hint: 'see docs/reference/config.md',
  },
  DATA_DIR_IN_USE: {
    number: 121,
    retriable: false,
    meaning: 'another process uses this data directory',
    hint: 'stop it, or use another data_dir',
  },
  DATA_DIR_UNUSABLE: {
    number: 122,
    retriable: false,
    meaning: 'the data directory cannot be used',
    hint: 'check path, owner and mount',
  },
  DATA_DIR_NEWER: {
    number: 123,
    retriable: false,
    meaning: 'the data directory was written by a newer version',
    hint: 'start that version, or use another data_dir',
  },
  DATA_DIR_MISMATCH: {
    number: 124,
    retriable: false,
    meaning:
      'parts of the data directory do not belong together, or it is an older copy of one that went on',
    hint: 'restore all of it, or start a new broker on an empty one',
  },
  DISK_FAILED: {
    number: 125,
    retriable: false,
    meaning: 'the disk failed',
    hint: 'check the disk; the broker stops rather than go on',
  },
} as const

export type ErrorCode = keyof typeof ERRORS

export interface ErrorOptions {
  readonly cause?: unknown
  /** Replaces the catalogue's hint where more is known. */
  readonly hint?: string
  /** Replaces the catalogue's: a newer peer knows better of an error that has no code here. */
  readonly retriable?: boolean
  /** Facts for programs: names, numbers, an address to go to. Small, and plain JSON. */
  readonly detail?: Readonly<Record<string, unknown>>
}

/** An error that the world made. `code` is stable; `message` is for people. */
export class EastGuardError extends Error {
  override readonly name: string = 'EastGuardError'
  readonly code: ErrorCode
  readonly retriable: boolean
  readonly hint: string
  readonly detail: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    const known = KINDS[code]
    this.code = code
    this.retriable = options.retriable ?? known.retriable
    this.hint = options.hint ?? known.hint
    this.detail = options.detail ?? {}
  }
}

/** Of whatever was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

const KINDS: Readonly<Record<ErrorCode, ErrorKind>> = ERRORS

const CODE_BY_NUMBER: ReadonlyMap<number, ErrorCode> = new Map(
  (Object.keys(ERRORS) as ErrorCode[]).map((code) => [ERRORS[code].number, code]),
)

/** The code for a number from the wire; INTERNAL for one that a newer peer may have added. */
export function errorCodeOf(number: number): ErrorCode {
  return CODE_BY_NUMBER.get(number) ?? 'INTERNAL'
}

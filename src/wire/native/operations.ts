// The operations of the native protocol and the versions of the protocol as a whole. A number never changes its
// meaning; a change of any message makes a new protocol version, agreed once per connection by HELLO, and every request
// names it. A request that names another, or an operation that the agreed version does not have, is answered with an
// error and the connection lives on: the frame's end is known, so nothing is lost.

import { EastGuardError } from '../../base/errors.ts'

export const OPERATION = {
  HELLO: 1,
  CREATE_TOPIC: 2,
  DELETE_TOPIC: 3,
  ALTER_TOPIC: 4,
  DESCRIBE_TOPICS: 5,
  LIST_TOPICS: 6,
  DESCRIBE_CLUSTER: 7,
  PRODUCE: 8,
  FETCH: 9,
  CONSUME: 10,
  CONSUME_CREDIT: 11,
  CONSUME_CLOSE: 12,
  LIST_OFFSETS: 13,
  ALLOCATE_PRODUCER_ID: 14,
  CONSUME_DATA: 15,
  ADD_PARTITIONS: 16,
  SET_BROKER_ROLE: 17,
  FORCE_END: 18,
} as const
export type OperationName = keyof typeof OPERATION

/** The versions that this code speaks. */
export const VERSION_MIN = 1
export const VERSION_MAX = 1

interface OperationKind {
  readonly name: OperationName
  /** The protocol versions that have it. */
  readonly since: number
  readonly until: number
  /** Sent by the broker unasked, never by a client. */
  readonly push: boolean
}

const PUSHED: ReadonlySet<OperationName> = new Set<OperationName>(['CONSUME_DATA'])

/** By number, so that a request costs no hashing. An operation that comes or goes later says so in `since` and `until`. */
const KINDS: readonly (OperationKind | undefined)[] = Array.from({ length: 256 }, (_, number) => {
  const name = (Object.keys(OPERATION) as OperationName[]).find((n) => OPERATION[n] === number)
  if (name === undefined) return undefined
  return { name, since: 1, until: VERSION_MAX, push: PUSHED.has(name) }
})

/** For logs, metrics and messages. */
export function operationName(number: number): string {
  return KINDS[number]?.name ?? `operation ${number}`
}

/** The greatest version that both sides speak; undefined when there is none. */
export function agreeVersion(peerMin: number, peerMax: number): number | undefined {
  const version = Math.min(peerMax, VERSION_MAX)
  return version >= Math.max(peerMin, VERSION_MIN) ? version : undefined
}

/**
 * Why a broker refuses a request that came after the hello, by its header alone; undefined when its body may be read.
 * The connection lives on whatever it is.
 */
export function requestFault(
  operation: number,
  version: number,
  agreed: number,
): EastGuardError | undefined {
  if (version !== agreed) {
    return new EastGuardError(
      'UNSUPPORTED_VERSION',
      `a request has version ${version}; the hello agreed on ${agreed}`,
      { detail: { version, agreed } },
    )
  }
  const kind = KINDS[operation]
  if (kind === undefined || kind.push || agreed < kind.since || agreed > kind.until) {
    return new EastGuardError(
      'UNKNOWN_OPERATION',
      `version ${agreed} of the protocol has no request with operation ${operation}`,
      { detail: { operation, version: agreed } },
    )
  }
  if (operation === OPERATION.HELLO) {
    return new EastGuardError('MALFORMED_REQUEST', 'a second hello on one connection')
  }
  return undefined
}

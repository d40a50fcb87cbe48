// Where a broker sends a client that asked the wrong one: what an error with NOT_LEADER or NOT_REPLICA carries.
//
//   NOT_LEADER    the leader of the open segment        A ──"segment 7 is led by B"──> client ──> B
//   NOT_REPLICA   those who hold what was to be read    A ──"C and D have it"────────> client ──> C or D
//
// Segment numbers grow along a range's lineage, so that of two redirects, or of a redirect and what the client has looked up
// itself, the one with the greater number is the newer. Without it a client between two brokers, one of which lags, could
// not tell whom to believe.

import type { Address } from '../base/address.ts'
import { EastGuardError, type ErrorCode } from '../base/errors.ts'
import { type NodeId, nodeId } from './ids.ts'

export interface RedirectBroker {
  readonly nodeId: NodeId
  /** Where clients reach it. */
  readonly address: Address
}

export interface Redirect {
  /** The segment that they lead, or hold; -1: not known. */
  readonly segment: number
  /** Empty: nobody is known; ask again in a while. */
  readonly brokers: readonly RedirectBroker[]
}

export const SEGMENT_UNKNOWN = -1
export const NO_REDIRECT: Redirect = { segment: SEGMENT_UNKNOWN, brokers: [] }

/** Whether an answer with this code says where to go instead. */
export function redirects(code: ErrorCode | undefined): boolean {
  return code === 'NOT_LEADER' || code === 'NOT_REPLICA'
}

export function redirectError(
  code: 'NOT_LEADER' | 'NOT_REPLICA',
  message: string,
  { segment, brokers }: Redirect,
): EastGuardError {
  const places = brokers.map(({ nodeId: node, address: { host, port } }) => ({ node, host, port }))
  return new EastGuardError(code, message, { detail: { segment, brokers: places } })
}

/** What `redirectError` put there; nobody when there is nothing, or nothing that can be understood. */
export function redirectIn(error: EastGuardError): Redirect {
  const { segment, brokers } = error.detail
  if (!redirects(error.code) || !Array.isArray(brokers)) return NO_REDIRECT
  return {
    segment: typeof segment === 'number' ? segment : SEGMENT_UNKNOWN,
    brokers: brokers.flatMap(brokerIn),
  }
}

function brokerIn(place: unknown): RedirectBroker[] {
  if (typeof place !== 'object' || place === null) return []
  const { node, host, port } = place as Readonly<Record<string, unknown>>
  if (typeof node !== 'string' || typeof host !== 'string' || typeof port !== 'number') return []
  if (!/^[0-9a-f]{32}$/.test(node)) return []
  return [{ nodeId: nodeId(node), address: { host, port } }]
}

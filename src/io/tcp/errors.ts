// The network's errors in words.

import type { Address } from '../../ports/streams.ts'

const MEANINGS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: nothing listens there',
  ECONNRESET: 'the other side reset the connection',
  EPIPE: 'the other side has closed the connection',
  EADDRINUSE: 'the port is in use',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'permission is denied',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be looked up now',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'no answer',
  EMFILE: 'this process has too many open files',
}

export function networkError(doing: string, cause: Error): Error {
  const code = (cause as NodeJS.ErrnoException).code
  const meaning = code === undefined ? cause.message : MEANINGS[code]
  const what = meaning === undefined ? String(code) : code ? `${meaning} (${code})` : meaning
  return new Error(`${doing}: ${what}`, { cause })
}

export function showAddress(address: Address): string {
  return address.host.includes(':')
    ? `[${address.host}]:${address.port}`
    : `${address.host}:${address.port}`
}

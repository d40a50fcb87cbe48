// Where something is to be reached, and how people write it.

export interface Address {
  readonly host: string
  readonly port: number
}

/** For people who wrote something else. */
export const ADDRESS_FORM = 'host:port with a port from 1 to 65535'

const ADDRESS = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/

/** `host`, `host:port` or `[ipv6]:port`; undefined for anything else. */
export function parseAddress(text: string, defaultPort: number): Address | undefined {
  const match = ADDRESS.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = match?.[3] === undefined ? defaultPort : Number(match[3])
  return host === undefined || port < 1 || port > 0xffff ? undefined : { host, port }
}

export function sameAddress(a: Address, b: Address): boolean {
  return a.host === b.host && a.port === b.port
}

// Addresses as people write them.

const ADDRESS = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/

/** `host`, `host:port` or `[ipv6]:port`; undefined for anything else. */
export function parseAddress(
  text: string,
  defaultPort: number,
): { readonly host: string; readonly port: number } | undefined {
  const match = ADDRESS.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = match?.[3] === undefined ? defaultPort : Number(match[3])
  return host === undefined || port < 1 || port > 0xffff ? undefined : { host, port }
}

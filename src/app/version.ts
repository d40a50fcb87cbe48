import { readFileSync } from 'node:fs'

/** The version in package.json, which stands three folders above the built file, in a clone and when installed. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

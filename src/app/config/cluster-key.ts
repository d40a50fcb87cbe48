// The cluster's keys, from the configuration or from a file that it names. No message holds any part of one.

import { utf8 } from '../../base/bytes.ts'
import type { ResolvedConfig } from './key.ts'

const CHARACTERS_MIN = 16
/** Two are enough to change one for another. */
const KEYS_MAX = 4

/** What is wrong goes to `faults`. */
export function readClusterKeys(
  config: ResolvedConfig,
  readFile: ((path: string) => string | undefined) | undefined,
  faults: string[],
): readonly Uint8Array[] {
  const key = config.clusterKey
  const path = config.clusterKeyFile
  if (path === '') return key === '' ? [] : checked('cluster_key', [key], faults)
  if (key !== '') {
    faults.push('cluster_key and cluster_key_file are both set: one of them is enough')
    return []
  }
  const where = `the file ${path} (cluster_key_file)`
  if (readFile === undefined) {
    faults.push(`${where} is not read inside a program: give it the key itself, as cluster_key`)
    return []
  }
  let text: string | undefined
  try {
    text = readFile(path)
  } catch (error) {
    faults.push(`${where} cannot be read: ${(error as Error).message}`)
    return []
  }
  if (text === undefined) {
    faults.push(`${where} does not exist`)
    return []
  }
  const lines = text.split('\n').map((line) => line.trim())
  const keys = lines.filter((line) => line !== '')
  if (keys.length === 0 || keys.length > KEYS_MAX) {
    faults.push(`${where} has ${keys.length} lines with keys: 1 to ${KEYS_MAX} are needed`)
    return []
  }
  return checked(where, keys, faults)
}

function checked(where: string, keys: readonly string[], faults: string[]): readonly Uint8Array[] {
  if (keys.some((key) => key.length < CHARACTERS_MIN)) {
    faults.push(
      `${where} has a key of less than ${CHARACTERS_MIN} characters: 'openssl rand -base64 32' makes a good one`,
    )
  }
  return keys.map(utf8)
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConfigInputs, loadConfig } from '../../../src/app/config/load.ts'
import { utf8 } from '../../../src/base/bytes.ts'
import { EastGuardError } from '../../../src/base/errors.ts'

const KEY = 'kept for ourselves'
const NEXT = 'what comes after it'
const SHORT = 'fifteen letters'

/** A machine with one file, and with eastguard.yaml when that is it. */
function holding(text: string, path: string = 'key'): Pick<ConfigInputs, 'readFile'> {
  return { readFile: (asked) => (asked === path ? text : undefined) }
}

function faultOf(inputs: ConfigInputs): string {
  try {
    loadConfig(inputs)
  } catch (error) {
    assert.ok(error instanceof EastGuardError && error.code === 'INVALID_CONFIG')
    return error.message
  }
  throw new Error('it was taken')
}

const FILE = { cluster_key_file: 'key' }

test('a key comes from any source, or from a file of up to four lines', () => {
  assert.deepEqual(loadConfig({}).clusterKeys, [])
  const env = { EASTGUARD_CLUSTER_KEY: KEY }
  assert.deepEqual(loadConfig({ env }).clusterKeys, [utf8(KEY)])
  const yaml = holding(`cluster_key: ${KEY}`, 'eastguard.yaml')
  assert.deepEqual(loadConfig(yaml).clusterKeys, [utf8(KEY)])
  const one = loadConfig({ flags: FILE, ...holding(`${KEY}\n`) })
  assert.deepEqual(one.clusterKeys, [utf8(KEY)])
  const two = loadConfig({ flags: FILE, ...holding(`\r\n ${NEXT}\r\n\r\n${KEY}`) })
  assert.deepEqual(two.clusterKeys, [utf8(NEXT), utf8(KEY)])
})

test('what is wrong with a key is said without it', () => {
  const messages = [
    faultOf({ flags: { cluster_key: SHORT } }),
    faultOf({ flags: FILE, ...holding(`${KEY}\n${SHORT}`) }),
    faultOf({ flags: { ...FILE, cluster_key: KEY }, ...holding(NEXT) }),
    faultOf({ env: { EASTGUARD_CLUSTERKEY: KEY } }),
    faultOf({ given: { cluster_key: [KEY] } }),
    faultOf(holding(`cluster_ky: ${KEY}`, 'eastguard.yaml')),
    faultOf(holding(`cluster_key: [${KEY}`, 'eastguard.yaml')),
  ]
  for (const message of messages) {
    for (const secret of [KEY, NEXT, SHORT]) assert.ok(!message.includes(secret), message)
  }
  assert.match(messages[0] ?? '', /less than 16 characters/)
})

test('a file of keys must be there, readable, and hold keys', () => {
  assert.match(faultOf({ flags: FILE, readFile: () => undefined }), /the file key .* not exist/)
  assert.match(faultOf({ flags: FILE }), /give it the key itself/)
  assert.match(faultOf({ flags: FILE, ...holding(' \n\n') }), /0 lines with keys/)
  const five = Array.from({ length: 5 }, () => KEY).join('\n')
  assert.match(faultOf({ flags: FILE, ...holding(five) }), /5 lines with keys/)
  const readFile = (path: string): string | undefined => {
    if (path === 'key') throw new Error('EACCES: permission denied')
    return undefined
  }
  assert.match(faultOf({ flags: FILE, readFile }), /cannot be read: EACCES/)
})

test('who listens to other machines without a key is warned', () => {
  const host = { host: '0.0.0.0' }
  const warned = (inputs: ConfigInputs): boolean =>
    loadConfig(inputs).warnings.some((line) => line.includes('no cluster key'))
  assert.ok(warned({ flags: host }))
  assert.ok(!warned({ flags: { ...host, cluster_key: KEY } }))
  assert.ok(!warned({}))
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Oracle } from './oracle.ts'
import { makeValue, readValue } from './records.ts'

const PROGRAM = fileURLToPath(new URL('./main.js', import.meta.url))

test('a real broker that is killed again and again keeps every acknowledged record', async () => {
  const child = spawn(process.execPath, [PROGRAM, '--rounds', '3', '--seed', '3'])
  let text = ''
  child.stdout.on('data', (chunk) => (text += String(chunk)))
  child.stderr.on('data', (chunk) => (text += String(chunk)))
  const code = await new Promise((resolve) => child.once('exit', resolve))
  assert.equal(code, 0, text)
  assert.match(text, /3 rounds, seed 3: \d+ kills .* 0 violations/)
})

/** Three records of producer 0, acknowledged at offsets 0, 1, 2 of partition 0. */
function acknowledged(): Oracle {
  const oracle = new Oracle(1)
  for (let i = 0; i < 3; i++) oracle.acknowledge(0, oracle.send(0), 0, i)
  return oracle
}

function judge(oracle: Oracle, reads: readonly (readonly [number, number])[]): readonly string[] {
  const ends = oracle.acknowledgedEnds()
  for (const [offset, number] of reads) oracle.read(0, offset, { producer: 0, number })
  oracle.missing(ends)
  return oracle.violations
}

const ALL = [
  [0, 0],
  [1, 1],
  [2, 2],
] as const

test('the oracle is content with what was acknowledged', () => {
  assert.deepEqual(judge(acknowledged(), ALL), [])
})

test('the oracle finds a lost record, a hole, a double, a stranger and a wrong place', () => {
  assert.match(judge(acknowledged(), ALL.slice(0, 2)).join(), /readable only below 2/)
  assert.match(judge(acknowledged(), [ALL[0], ALL[2]]).join(), /offset 1 was expected/)
  const doubled = judge(acknowledged(), [...ALL, [3, 2]])
  assert.match(doubled.join(), /again or out of order/)
  assert.match(judge(acknowledged(), [...ALL, [3, 3]]).join(), /never sent/)
  assert.match(judge(acknowledged(), [[0, 1]]).join(), /0:0 was acknowledged here, 0:1 is here/)
  const oracle = acknowledged()
  oracle.read(0, 0, undefined)
  assert.match(oracle.violations.join(), /bytes that were never sent/)
  oracle.acknowledge(0, 7, 0, 1)
  assert.match(oracle.violations.join(), /acknowledged twice/)
})

test('a record proves itself: other bytes are nobody’s', () => {
  const value = makeValue(5, 2, 17)
  assert.deepEqual(readValue(5, value), { producer: 2, number: 17 })
  for (let at = 0; at < value.length; at++) {
    const damaged = Buffer.from(value)
    damaged[at] = (damaged[at] as number) ^ 1
    const found = readValue(5, damaged)
    assert.notDeepEqual(found, { producer: 2, number: 17 })
  }
  assert.equal(readValue(6, value), undefined)
})

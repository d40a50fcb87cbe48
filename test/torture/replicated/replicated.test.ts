import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../main.js', import.meta.url))
/** The files are compared once, at the end. */
const SELDOM = ['--compare-every', '100', '--restart-every', '100']
const WORDS = ['--scenario', 'replicated', '--rounds', '1', '--brief', ...SELDOM]

test('three real brokers lose no record, and become whole again, whatever happens to one or two or all of them', async () => {
  const child = spawn(process.execPath, [PROGRAM, ...WORDS])
  let text = ''
  child.stdout.on('data', (chunk) => (text += String(chunk)))
  child.stderr.on('data', (chunk) => (text += String(chunk)))
  const code = await new Promise((resolve) => child.once('exit', resolve))
  assert.equal(code, 0, text)
  assert.match(text, /old-copy: 1 rounds/)
  assert.match(text, /1 rounds each, seed 1: 0 violations/)
})

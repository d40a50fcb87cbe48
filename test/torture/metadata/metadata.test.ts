import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../main.js', import.meta.url))
const WORDS = ['--scenario', 'metadata', '--rounds', '5', '--seed', '1', '--brief']

test('what three real brokers say of topics has an order and outlives kills, pauses and restarts', async () => {
  const child = spawn(process.execPath, [PROGRAM, ...WORDS])
  let text = ''
  child.stdout.on('data', (chunk) => (text += String(chunk)))
  child.stderr.on('data', (chunk) => (text += String(chunk)))
  const code = await new Promise((resolve) => child.once('exit', resolve))
  assert.equal(code, 0, text)
  assert.match(text, /1 kill, 1 stop, 1 pause, 1 kill-two, 1 restart-all; .* 0 violations/)
})

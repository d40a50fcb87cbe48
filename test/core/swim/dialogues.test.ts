// UPDATE_TRANSCRIPTS=1 node --test build/test/core/swim/dialogues.test.js writes transcripts/ anew: review the difference.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { SCRIPTS } from './scripts.ts'

const FOLDER = 'test/core/swim/transcripts'
const update = process.env['UPDATE_TRANSCRIPTS'] === '1'

for (const [name, script] of Object.entries(SCRIPTS)) {
  test(`what is said in ${name} is what its transcript says`, () => {
    const path = join(FOLDER, `${name}.txt`)
    const { text } = script()
    if (update) writeFileSync(path, text)
    assert.equal(text, readFileSync(path, 'utf8'))
  })
}

test('every transcript has its script', () => {
  const names = readdirSync(FOLDER).map((file) => file.replace(/\.txt$/, ''))
  assert.deepEqual(names.sort(), Object.keys(SCRIPTS).sort())
})

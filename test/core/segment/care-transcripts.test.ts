// The coordinator's rules as dialogues, byte for byte. REWRITE_TRANSCRIPTS=1 writes them anew.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CARE_DIALOGUES } from './care-dialogues.ts'

const DIR = 'test/core/segment/care-transcripts'
const rewrite = process.env['REWRITE_TRANSCRIPTS'] === '1'

const fileOf = (name: string): string => `${name.replaceAll(' ', '-')}.txt`

if (rewrite) mkdirSync(DIR, { recursive: true })

for (const [name, play] of Object.entries(CARE_DIALOGUES)) {
  test(`the coordinator of a range, as a dialogue: ${name}`, () => {
    const told = `${play().lines.join('\n')}\n`
    const path = join(DIR, fileOf(name))
    if (rewrite) writeFileSync(path, told)
    assert.equal(told, readFileSync(path, 'utf8'), `${path}: REWRITE_TRANSCRIPTS=1 rewrites it`)
  })
}

test('every transcript of the coordinator has a script', () => {
  const known = new Set(Object.keys(CARE_DIALOGUES).map(fileOf))
  const others = readdirSync(DIR).filter((file) => file.endsWith('.txt') && !known.has(file))
  if (rewrite) for (const file of others) rmSync(join(DIR, file))
  else assert.deepEqual(others, [])
})

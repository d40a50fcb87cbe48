// Each rule as a dialogue, byte for byte: see transcripts/README.md.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { DIALOGUES } from './dialogues.ts'

const DIR = 'test/core/segment/transcripts/replicas'
const rewrite = process.env['REWRITE_TRANSCRIPTS'] === '1'

const fileOf = (name: string): string => `${name.replaceAll(' ', '-')}.txt`

for (const [name, play] of Object.entries(DIALOGUES)) {
  test(`replicas of a segment, as a dialogue: ${name}`, () => {
    const told = `${play().lines.join('\n')}\n`
    const path = join(DIR, fileOf(name))
    if (rewrite) writeFileSync(path, told)
    assert.equal(told, readFileSync(path, 'utf8'), `${path}: its README says how to rewrite it`)
  })
}

test('every transcript of replicas has a script', () => {
  const known = new Set(Object.keys(DIALOGUES).map(fileOf))
  const others = readdirSync(DIR).filter((file) => !known.has(file))
  if (rewrite) for (const file of others) rmSync(join(DIR, file))
  else assert.deepEqual(others, [])
})

// Hosts cut apart, in network namespaces that the test makes: nothing that was acknowledged is lost, whoever is cut off is told,
// and all comes together again by itself. Skipped where no namespaces can be made.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runSandboxed, sandboxTrouble } from '../torture/netns/sandbox.ts'

const PROGRAM = fileURLToPath(new URL('../torture/netns/main.js', import.meta.url))
const trouble = sandboxTrouble()
const skip = trouble ?? false

for (const [what, fault] of [
  ['a leader that is cut off answers nobody falsely, and others go on', 'leader-alone'],
  ['a leader that nobody hears is replaced, and its clients find who leads', 'leader-mute'],
] as const) {
  test(what, { skip }, async () => {
    let text = ''
    const code = await runSandboxed(PROGRAM, ['--inside', '--fault', fault], (more) => {
      text += more
    })
    assert.equal(code, 0, text)
    assert.match(text, /0 violations/)
  })
}

// Hosts cut apart, in network namespaces that the test makes: nothing that was acknowledged is lost, whoever is cut off is told,
// and all comes together again by itself. Skipped where no namespaces can be made.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runSandboxed, sandboxTrouble } from '../torture/netns/sandbox.ts'

const PROGRAM = fileURLToPath(new URL('../torture/netns/main.js', import.meta.url))
const trouble = sandboxTrouble()
const skip = trouble ?? false

test('a leader that is cut off from all others answers nobody falsely, and others go on', {
  skip,
}, async () => {
  let text = ''
  const args = ['--inside', '--fault', 'leader-alone']
  const code = await runSandboxed(PROGRAM, args, (more) => (text += more))
  assert.equal(code, 0, text)
})

import assert from 'node:assert/strict'
import { createInterface, type Interface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { ask } from '../../src/cli/shell/ask.ts'

interface Asked {
  readonly input: PassThrough
  readonly terminal: Interface
  readonly interrupt: AbortController
  readonly answer: Promise<boolean>
}

function asked(): Asked {
  const input = new PassThrough()
  const terminal = createInterface({ input, output: new PassThrough(), terminal: true })
  const interrupt = new AbortController()
  return { input, terminal, interrupt, answer: ask(terminal, 'sure?', interrupt.signal) }
}

test('yes is yes; anything else, and the end of the input, is no', async () => {
  for (const [typed, yes] of [
    ['y\r', true],
    [' YES \r', true],
    ['\r', false],
    ['yesterday\r', false],
    ['\u0004', false],
  ] as const) {
    const { input, terminal, answer } = asked()
    input.write(typed)
    assert.equal(await answer, yes, JSON.stringify(typed))
    terminal.close()
  }
})

test('an interrupted question ends its command, and the next line is not taken for its answer', async () => {
  const { input, terminal, interrupt, answer } = asked()
  terminal.on('SIGINT', () => interrupt.abort())
  input.write('\u0003')
  await assert.rejects(answer, { code: 'ABORTED' })
  const line = new Promise((resolve) => {
    terminal.once('line', resolve)
  })
  input.write('list-topics\r')
  assert.equal(await line, 'list-topics')
  terminal.close()
})

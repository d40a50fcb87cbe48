import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pinoLog } from '../../src/io/log/pino-log.ts'
import type { Log } from '../../src/ports/log.ts'
import { simLog } from '../../src/sim/ports/log.ts'

interface Line {
  readonly level: string
  readonly message: string
  readonly fields: Record<string, unknown>
}

function logSuite(name: string, make: () => { log: Log; lines: () => Line[] }): void {
  test(`${name} log: lines have level, message and fields, a child's too`, () => {
    const { log, lines } = make()
    log.debug('one')
    const child = log.child({ topic: 't' })
    child.warn('two', { offset: 5 })
    child.child({ range: 1 }).error('three', { topic: 'u' })
    log.info('four', {})
    assert.deepEqual(lines(), [
      { level: 'debug', message: 'one', fields: {} },
      { level: 'warn', message: 'two', fields: { topic: 't', offset: 5 } },
      { level: 'error', message: 'three', fields: { topic: 'u', range: 1 } },
      { level: 'info', message: 'four', fields: {} },
    ])
  })
}

logSuite('pino', () => {
  const written: string[] = []
  const log = pinoLog({ level: 'debug', text: false, write: (line) => written.push(line) })
  return {
    log,
    lines: () =>
      written.map((line) => {
        const { level, msg, time, ...fields } = JSON.parse(line) as Record<string, unknown>
        assert.match(String(time), /^\d{4}-\d\d-\d\dT/)
        return { level: String(level), message: String(msg), fields }
      }),
  }
})

logSuite('simulated', () => {
  const log = simLog()
  return { log, lines: () => log.lines.map((line) => ({ ...line, fields: { ...line.fields } })) }
})

test('pino log: below its level nothing is written; an error keeps its stack', () => {
  const written: string[] = []
  const log = pinoLog({ level: 'warn', text: false, write: (line) => written.push(line) })
  log.info('quiet')
  log.error('loud', { err: new Error('why') })
  assert.equal(written.length, 1)
  const { err } = JSON.parse(written[0] as string) as { err: { message: string; stack: string } }
  assert.equal(err.message, 'why')
  assert.match(err.stack, /log\.test/)
})

test('pino log: for people a line is time, level, sentence and fields', () => {
  const written: string[] = []
  const log = pinoLog({ level: 'info', text: true, write: (line) => written.push(line) })
  log.child({ port: 2921 }).info('listening', { host: 'x' })
  assert.match(
    written.join(''),
    /^\d\d:\d\d:\d\d\.\d{3} INFO {2}listening {2}port=2921 {2}host=x\n$/,
  )
})

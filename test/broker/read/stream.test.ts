// A stream of one partition by hand: its cursor is what the test says.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cursor } from '../../../src/broker/read/cursor.ts'
import { ConsumeStream } from '../../../src/broker/read/stream.ts'
import type { Watcher } from '../../../src/broker/sinks.ts'

test('a reader that has read more elsewhere than this replica has waits, and is pushed nothing', () => {
  const waiting: Watcher[] = []
  let end = 5
  const cursor = {
    offset: 7,
    logStart: 0,
    runtime: { deleted: false },
    next: () => [],
    passed: () => {},
    committedEnd: () => end,
    watch: (watcher: Watcher) => void waiting.push(watcher),
    unwatch: () => {},
  }
  let pushes = 0
  const stream = new ConsumeStream([cursor as unknown as Cursor], 1000, undefined, {
    // Whoever is pushed to without end would never come back.
    push: () => ++pushes < 3,
    ended: () => true,
  })
  stream.start()
  assert.deepEqual({ pushes, waiting: waiting.length }, { pushes: 0, waiting: 1 })
  end = 6
  waiting.pop()?.wake()
  assert.deepEqual({ pushes, waiting: waiting.length }, { pushes: 0, waiting: 1 })
})

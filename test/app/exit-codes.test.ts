import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFailure } from '../../src/app/exit-codes.ts'
import { EastGuardError } from '../../src/base/errors.ts'
import { DiskError } from '../../src/ports/disk.ts'

test('a path that cannot be is told of the path, not of a failing disk', () => {
  const cause = new DiskError('not-found', 'lock', '.')
  const { code, hint } = startFailure(new EastGuardError('DATA_DIR_UNUSABLE', 'no', { cause }))
  assert.equal(code, 3)
  assert.match(hint, /check path/)
})

test('only a port in use is blamed on another program', () => {
  const of = (code: string): string => startFailure(new Error(`cannot listen on x: (${code})`)).hint
  assert.match(of('EADDRINUSE'), /another program/)
  assert.match(of('EADDRNOTAVAIL'), /of this machine/)
})

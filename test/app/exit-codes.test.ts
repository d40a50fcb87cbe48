import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fatalCode, startFailure } from '../../src/app/exit-codes.ts'
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

test('who was refused as an older copy, or founded a cluster by mistake, is not told that the disk failed', () => {
  assert.equal(fatalCode(new EastGuardError('DATA_DIR_MISMATCH', 'an older copy')), 3)
  assert.equal(startFailure(new EastGuardError('DATA_DIR_MISMATCH', 'an older copy')).code, 3)
  assert.equal(fatalCode(new EastGuardError('CLUSTER_MISMATCH', 'an older cluster')), 3)
  assert.equal(fatalCode(new DiskError('read-only', 'wal', 'no')), 5)
  assert.equal(fatalCode(new EastGuardError('DISK_FAILED', 'no')), 5)
})

// For assert.rejects: the code that an error must have, and whether it must say that the record may be stored.

import assert from 'node:assert/strict'
import type { EastGuardError, ErrorCode } from '../../../src/base/errors.ts'

export function code(
  expected: ErrorCode,
  maybeStored?: boolean,
): (error: EastGuardError) => boolean {
  return (error) => {
    assert.equal(error.code, expected, error.message)
    if (maybeStored !== undefined) {
      assert.equal(error.detail['maybeStored'] === true, maybeStored, error.message)
    }
    return true
  }
}

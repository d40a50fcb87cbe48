import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearness } from '../../src/cli/nearness.ts'

test('labels of host and rack come from the variables that brokers take them from, and only what is given', () => {
  assert.deepEqual(nearness({ EASTGUARD_RACK_LABEL: 'east', EASTGUARD_HOST_LABEL: 'm1' }), {
    hostLabel: 'm1',
    rackLabel: 'east',
  })
  // Not even as undefined: it would take the default's place.
  assert.deepEqual(Object.keys(nearness({ PATH: '/bin' })), [])
})

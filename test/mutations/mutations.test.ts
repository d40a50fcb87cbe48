// `npm run mutations` takes minutes and is run by hand; here is only seen that each mutation still fits the code.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { CLUSTER_MUTATIONS, SHARDS_MUTATIONS } from './cluster.ts'
import { MEMBERSHIP_MUTATIONS } from './membership.ts'
import { editsOf, mutate } from './mutate.ts'
import { RAFT_MUTATIONS } from './raft.ts'
import { REPLICATION_MUTATIONS } from './replication.ts'
import { SEGMENT_MUTATIONS } from './segment.ts'
import { STORAGE_MUTATIONS } from './storage.ts'
import { SWIM_MUTATIONS } from './swim.ts'

test('every mutation changes what it means to change', () => {
  for (const mutation of [
    ...STORAGE_MUTATIONS,
    ...CLUSTER_MUTATIONS,
    ...SHARDS_MUTATIONS,
    ...REPLICATION_MUTATIONS,
    ...MEMBERSHIP_MUTATIONS,
    ...RAFT_MUTATIONS,
    ...SEGMENT_MUTATIONS,
    ...SWIM_MUTATIONS,
  ]) {
    for (const edit of editsOf(mutation)) {
      const code = readFileSync(`build/${edit.file}`, 'utf8')
      assert.notEqual(mutate(code, edit, mutation.name), code, mutation.name)
    }
  }
})

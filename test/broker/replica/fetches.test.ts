// Who asks another broker for entries: how long it waits, and what it takes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { DataLinks } from '../../../src/broker/data/types.ts'
import type { RangeContext } from '../../../src/broker/range/context.ts'
import { FetchClient } from '../../../src/broker/replica/fetches.ts'
import type { Entry } from '../../../src/model/entry.ts'
import { nodeId } from '../../../src/model/ids.ts'
import { placeOfKey } from '../../../src/model/segment-key.ts'
import type { Fetched } from '../../../src/wire/data/types.ts'
import { KEY, Model, plain } from '../../storage/segment/rig.ts'
import { manualClock } from '../../storage/support/ports.ts'

const OTHER = nodeId('bb'.repeat(16))
const PATIENCE_MS = 10_000

interface World {
  readonly clock: ReturnType<typeof manualClock>
  readonly client: FetchClient
  /** What became of the one fetch. */
  readonly result: { entries?: readonly Entry[]; failed?: string }
}

function asked(): World {
  const clock = manualClock()
  const links = { send: () => true } as unknown as DataLinks
  const client = new FetchClient({ clock } as unknown as RangeContext, links)
  const result: World['result'] = {}
  client.fetch(OTHER, KEY, undefined, 0, 10, 1000).then(
    (entries) => {
      result.entries = entries
    },
    (error: Error) => {
      result.failed = error.message
    },
  )
  return { clock, client, result }
}

function part(entries: readonly Entry[], last: boolean, key: typeof KEY = KEY): Fetched {
  return { kind: 'fetched', id: 1, failed: undefined, last, place: placeOfKey(key), entries }
}

test('entries that come part by part over a slow link are waited for as long as parts come', async () => {
  const { clock, client, result } = asked()
  const model = new Model()
  for (let i = 0; i < 10; i++) {
    clock.advance(PATIENCE_MS - 1)
    client.receive(OTHER, part([model.make(0, 100)], i === 9))
    await turn()
  }
  assert.deepEqual(plain(result.entries), plain(model.entries))
})

test('who gives nothing more for long is not waited for', async () => {
  const { clock, client, result } = asked()
  client.receive(OTHER, part([new Model().make(0, 100)], false))
  clock.advance(PATIENCE_MS)
  await turn()
  assert.match(result.failed ?? '', /does not answer/)
})

test('entries of another segment than the one asked for are not taken', async () => {
  for (const other of [
    { ...KEY, segment: 2 },
    { ...KEY, range: 1 },
  ]) {
    const { client, result } = asked()
    client.receive(OTHER, part([new Model().make(0, 100)], true, other))
    await turn()
    assert.match(result.failed ?? '', /another segment/)
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Prng, prng } from '../../../src/base/prng.ts'
import { beginRecordLog } from '../../../src/storage/wal/record-log.ts'
import type { RecordLog } from '../../../src/storage/wal/types.ts'
import {
  beginOptions,
  KIND,
  payloadOf,
  recordsOf,
  recover,
  type World,
  world,
} from '../support/logs.ts'
import { CUT, KILL, untilCrash } from '../support/until-crash.ts'

// What the world outside the log knows, and what the log must agree with after every crash.
interface Truth {
  /** Records below it were acknowledged. */
  acknowledged: number
  /** Records below it were stored elsewhere and released. */
  released: number
  /** The payload that was given to each number last; none other may come back under it. */
  readonly given: Map<number, Uint8Array>
}

/** Recovers, compares, "stores elsewhere" what was found and begins a new generation. */
async function reopen(w: World, truth: Truth, note: string): Promise<RecordLog> {
  const found = await recover(w)
  assert.deepEqual(found.lost, [], `${note}: a crash is no damage`)
  const records = await recordsOf(found)
  assert.equal(records.size, found.endLsn - found.firstLsn, `${note}: dense`)
  assert.ok(found.firstLsn <= Math.max(1, truth.released), `${note}: nothing needed was freed`)
  assert.ok(found.endLsn >= truth.acknowledged, `${note}: the acknowledged is there`)
  for (const [lsn, payload] of records) {
    assert.deepEqual(payload, truth.given.get(lsn), `${note}: record ${lsn} is what was written`)
  }
  // Stored elsewhere before the new generation begins, so that its header, on disk although the beginning died, may say so.
  truth.released = found.endLsn
  const log = await beginRecordLog(found, beginOptions(w))
  truth.acknowledged = found.endLsn
  return log
}

async function work(w: World, log: RecordLog, truth: Truth, chance: Prng): Promise<void> {
  for (let step = 0; step < 60; step++) {
    const burst = 1 + chance.below(8)
    for (let i = 0; i < burst; i++) {
      const payload = payloadOf(log.nextLsn, chance, chance.below(6) === 0 ? 9000 : 500)
      truth.given.set(log.nextLsn, payload)
      log.append(KIND, payload)
    }
    const end = log.nextLsn
    const synced = log.sync().then(() => {
      truth.acknowledged = Math.max(truth.acknowledged, end)
    })
    if (chance.below(3) === 0) await synced
    else synced.catch(() => {})
    if (chance.below(4) === 0) w.clock.advance(25)
    if (chance.below(5) === 0) {
      truth.released = truth.acknowledged
      log.releaseBelow(truth.acknowledged)
    }
  }
  await log.close()
}

async function lifeAndDeath(seed: number): Promise<void> {
  const chance = prng(seed)
  const w = world(seed)
  const truth: Truth = { acknowledged: 1, released: 1, given: new Map() }
  for (let round = 0; round < 6; round++) {
    const note = `seed ${seed} round ${round}`
    const at = w.disk.operations + 1 + chance.below(round % 2 === 0 ? 300 : 30)
    // A kill may be followed by a power cut before anything is synced again.
    await untilCrash(w.disk, at, chance.below(3) === 0 ? KILL : CUT, async () => {
      await work(w, await reopen(w, truth, note), truth, chance)
    })
  }
  await reopen(w, truth, `seed ${seed} end`)
}

test('any part of the last group may survive: all that was acknowledged is there, nothing else comes back, and it is no damage', async () => {
  for (let seed = 1; seed <= 400; seed++) await lifeAndDeath(seed)
})

test('a crash at every operation of one workload, and of the recovery after it, loses nothing', async () => {
  for (let at = 1; ; at++) {
    const w = world(at)
    const truth: Truth = { acknowledged: 1, released: 1, given: new Map() }
    const finished = await untilCrash(w.disk, at, CUT, async () => {
      await work(w, await reopen(w, truth, 'start'), truth, prng(4))
      return true
    })
    if (finished === true) break
    // The recovery dies as well, somewhere.
    const again = w.disk.operations + 1 + prng(at).below(40)
    await untilCrash(w.disk, again, CUT, () => reopen(w, truth, `operation ${at}, again`))
    await reopen(w, truth, `operation ${at}`)
  }
})

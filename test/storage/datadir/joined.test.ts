import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusterId } from '../../../src/model/ids.ts'
import type { ClusterIdentity } from '../../../src/model/swim.ts'
import type { Disk } from '../../../src/ports/disk.ts'
import { simDisk } from '../../../src/sim/ports/disk.ts'
import { type DataDir, openDataDir } from '../../../src/storage/datadir/data-dir.ts'
import { seededRandom } from '../support/ports.ts'
import { CUT, untilCrash } from '../support/until-crash.ts'

const CLUSTER: ClusterIdentity = { id: clusterId('c'.repeat(32)), foundedMs: 1234, shards: 64 }

function open(disk: Disk): Promise<DataDir> {
  return openDataDir({
    disk,
    random: seededRandom(1),
    displayName: 'east-1',
    journalDir: 'journal',
    walDir: 'wal',
    cluster: undefined,
  })
}

for (const founder of [true, false]) {
  const how = founder ? 'founded' : 'joined'
  test(`a new directory belongs to no cluster until one is ${how}, and to that one for ever`, async () => {
    const disk = simDisk().mount()
    const first = await open(disk)
    assert.equal(first.cluster, undefined)
    assert.throws(() => first.clusterId, /belongs to a cluster/)
    await first.close()
    const second = await open(disk)
    assert.deepEqual([second.cluster, second.founder], [undefined, false])
    await second.joined(CLUSTER, founder)
    await assert.rejects(second.joined({ ...CLUSTER, shards: 8 }, false), /one cluster for ever/)
    for (const dir of [second, await reopened(second, disk)]) {
      assert.deepEqual([dir.cluster, dir.founder], [CLUSTER, founder])
      assert.deepEqual([dir.clusterId, dir.metadataShards], [CLUSTER.id, CLUSTER.shards])
    }
  })
}

async function reopened(dir: DataDir, disk: Disk): Promise<DataDir> {
  await dir.close()
  return open(disk)
}

test('a crash while the cluster is written down leaves all of it or nothing, and a directory that starts', async () => {
  let wasWritten = 0
  for (let operation = 1; ; operation++) {
    const sim = simDisk({ seed: operation })
    const dir = await open(sim.mount())
    const at = sim.operations + operation
    const ended = await untilCrash(sim, at, CUT, () => dir.joined(CLUSTER, true).then(() => true))
    const again = await open(sim.mount())
    if (again.cluster !== undefined) {
      wasWritten++
      assert.deepEqual([again.cluster, again.founder], [CLUSTER, true])
    } else assert.deepEqual([ended, again.founder], [undefined, false])
    if (ended === true) break
  }
  assert.ok(wasWritten > 0)
})

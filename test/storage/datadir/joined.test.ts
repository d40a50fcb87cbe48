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
  })
}

for (const founder of [true, false]) {
  const how = founder ? 'founded' : 'joined'
  test(`a new directory belongs to no cluster until one is ${how}, and to that one for ever`, async () => {
    const disk = simDisk().mount()
    const first = await open(disk)
    assert.equal(first.cluster, undefined)
    await first.close()
    const second = await open(disk)
    assert.equal(second.cluster, undefined)
    const cluster = { ...CLUSTER, founder }
    await second.joined(cluster)
    await assert.rejects(second.joined({ ...cluster, shards: 8 }), /one cluster/)
    for (const dir of [second, await reopened(second, disk)]) assert.deepEqual(dir.cluster, cluster)
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
    const ended = await untilCrash(sim, at, CUT, () =>
      dir.joined({ ...CLUSTER, founder: true }).then(() => true),
    )
    const again = await open(sim.mount())
    if (again.cluster !== undefined) {
      wasWritten++
      assert.deepEqual(again.cluster, { ...CLUSTER, founder: true })
    } else assert.equal(ended, undefined)
    if (ended === true) break
  }
  assert.ok(wasWritten > 0)
})

test('where the others are is kept, the last of it, and written only when it has changed', async () => {
  const sim = simDisk()
  const first = await open(sim.mount())
  assert.deepEqual(first.peers, [])
  const [a, b] = [
    { host: '::1', port: 2922 },
    { host: 'b', port: 2932 },
  ]
  await first.keepPeers([a])
  await first.keepPeers([a, b])
  const { operations } = sim
  await first.keepPeers([b, a])
  assert.equal(sim.operations, operations)
  const again = await reopened(first, sim.mount())
  assert.deepEqual(again.peers, [a, b])
  await again.keepPeers([])
  assert.deepEqual((await reopened(again, sim.mount())).peers, [])
})

test('where the others are is written when it is said again, if the disk was full the first time', async () => {
  const sim = simDisk()
  const first = await open(sim.mount())
  const peers = [{ host: 'b', port: 2932 }]
  const room = sim.fail({ operation: 'write', path: 'node.json', fault: 'full' })
  await assert.rejects(first.keepPeers(peers))
  room()
  await first.keepPeers(peers)
  assert.deepEqual((await reopened(first, sim.mount())).peers, peers)
})

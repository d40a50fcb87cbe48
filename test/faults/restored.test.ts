// A real broker whose data directory is put back as it was before its last start: the others refuse it, and its process ends
// with the exit code that tells a supervisor to leave it alone.

import assert from 'node:assert/strict'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { EXIT_DATA_DIR } from '../../src/app/exit-codes.ts'
import { EastGuard } from '../../src/index.ts'
import { type LocalBroker, LocalCluster } from '../support/local-cluster.ts'

test('an older copy of a data directory ends its broker with the code of an unusable directory, again and again', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'eastguard-restored-'))
  const cluster = await LocalCluster.form({
    brokers: 3,
    parent,
    flags: ['--metadata-shards', '8', '--wal-file-bytes', '4MiB', '--reserve-bytes', '1MiB'],
  })
  try {
    const broker = cluster.brokers[2]
    assert.ok(broker !== undefined)
    const { dataDir } = broker
    const copy = join(parent, 'copy')
    await broker.end('SIGKILL')
    // A lock is a socket.
    const filter = (path: string): boolean => !path.startsWith(join(dataDir, 'lock'))
    await cp(dataDir, copy, { recursive: true, filter })
    await cluster.start(broker)
    await broker.ready()
    await cluster.whole(60_000)
    await broker.end('SIGKILL')
    await rm(dataDir, { recursive: true })
    await cp(copy, dataDir, { recursive: true })
    // Members may refuse it before a link does, and only a link marks it: at the second start the number of starts is right.
    await refused(cluster, broker)
    await refused(cluster, broker)
    const before = await readFile(join(dataDir, 'node.json'), 'utf8')
    await refused(cluster, broker)
    assert.equal(await readFile(join(dataDir, 'node.json'), 'utf8'), before)
    await using client = new EastGuard({ seeds: cluster.seeds.slice(0, 2) })
    await client.admin().createTopic('goes-on', { timeoutMs: 20_000 })
  } finally {
    await cluster.close()
    await rm(parent, { recursive: true, force: true })
  }
})

async function refused(cluster: LocalCluster, broker: LocalBroker): Promise<void> {
  await cluster.start(broker)
  const { process } = broker
  assert.equal(await process?.exited, EXIT_DATA_DIR, process?.log())
  assert.match(process?.log() ?? '', /older copy/)
}

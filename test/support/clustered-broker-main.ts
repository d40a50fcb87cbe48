// `eastguard server` as a broker of a cluster whose parent says who belongs to it. The first word is the id of the
// cluster that it joins, empty for one that founds it; the others are those of the command. Then the two talk:
//
//   parent                                     broker
//     <── at { neighbour }                        where it can be reached, long before it is ready
//     ── neighbours [...] ──>                     whom it knows, itself among them
//     <── ready { cluster id }                    it takes clients
//     ── members [...] ──>                        every shard that it leads is brought to these members,
//     <── settled                                 and their leaders spread over them
//
// Who keeps which shard is so decided by hand, as long as nothing else decides it.

import { startLog } from '../../src/app/log.ts'
import { startLocalServer } from '../../src/app/server.ts'
import { packageVersion } from '../../src/app/version.ts'
import type { Neighbour } from '../../src/broker/options.ts'
import { rootCommand } from '../../src/cli/grammar.ts'
import { addConfigFlags, configFromFlags } from '../../src/cli/server/config-flags.ts'
import { growHeapFreely } from '../../src/cli/server/heap.ts'
import type { ClusterId, NodeId } from '../../src/model/ids.ts'
import type { BrokerHooks } from '../../src/server/types.ts'
import { pause } from './broker-process.ts'

export type ToBroker =
  | { readonly kind: 'neighbours'; readonly neighbours: readonly Neighbour[] }
  | { readonly kind: 'members'; readonly members: readonly NodeId[] }

export type FromBroker =
  | { readonly kind: 'at'; readonly neighbour: Neighbour }
  | { readonly kind: 'ready'; readonly clusterId: ClusterId }
  | { readonly kind: 'settled' }

type Shards = Parameters<NonNullable<BrokerHooks['onMetadata']>>[0]['shards']

const LOOK_MS = 20

/** Brings the shards that this broker leads to these members, one step at a time, and hands each to one of them. */
async function settle(shards: Shards, self: NodeId, members: readonly NodeId[]): Promise<void> {
  for (;;) {
    let left = 0
    for (let shard = 0; shard < shards.count; shard++) {
      if (!settledShard(shards, shard, self, members)) left++
    }
    if (left === 0) return
    await pause(LOOK_MS)
  }
}

function settledShard(
  shards: Shards,
  shard: number,
  self: NodeId,
  members: readonly NodeId[],
): boolean {
  const view = shards.view(shard)
  if (view === undefined || view.role !== 'leader') return view?.leader !== undefined
  if (!view.settled) return false
  const { voters, learners } = view.members
  const missing = members.find((node) => !voters.includes(node) && !learners.includes(node))
  if (missing !== undefined) {
    shards.change(shard, { kind: 'add-learner', node: missing })
    return false
  }
  // One that has not caught up is refused, and asked for again.
  for (const node of learners) shards.change(shard, { kind: 'promote', node })
  if (learners.length > 0) return false
  const leader = members[shard % members.length]
  if (leader === undefined || leader === self) return true
  shards.handOver(shard, leader)
  return false
}

const [joins = '', ...words] = process.argv.slice(2)
let neighbours: readonly Neighbour[] = []
let part: { readonly nodeId: NodeId; readonly shards: Shards } | undefined
const tell = (message: FromBroker): void => void process.send?.(message)

process.on('message', (message: ToBroker) => {
  if (message.kind === 'neighbours') neighbours = message.neighbours
  else if (part !== undefined) {
    void settle(part.shards, part.nodeId, message.members).then(() => tell({ kind: 'settled' }))
  }
})
// Nobody is left to stop it.
process.once('disconnect', () => process.exit())

async function serve(options: Readonly<Record<string, unknown>>): Promise<void> {
  growHeapFreely(process.execArgv)
  const { config } = configFromFlags(options, process.env)
  const { host, clientPort: port, displayName } = config
  const broker = await startLocalServer({
    config,
    version: packageVersion(),
    log: startLog(config.logLevel),
    processMetrics: true,
    cluster: {
      port: config.clusterPort,
      ...(joins !== '' && { joins: joins as ClusterId }),
      neighbours: () => neighbours,
    },
    hooks: {
      onFatal: () => process.exit(1),
      onMetadata: ({ nodeId, cluster, shards }) => {
        part = { nodeId, shards }
        if (cluster === undefined) throw new Error('a broker of a cluster can be reached by others')
        tell({ kind: 'at', neighbour: { nodeId, displayName, cluster, client: { host, port } } })
      },
    },
  })
  process.once('SIGTERM', () => void broker.stop().then(() => process.exit(0)))
  tell({ kind: 'ready', clusterId: broker.clusterId })
}

const program = rootCommand('eastguard')
addConfigFlags(program.command('server')).action(serve)
await program.parseAsync(words, { from: 'user' })

// What the cluster is and who is in it.

import type { Command } from 'commander'
import { EastGuardError } from '../../base/errors.ts'
import type { NodeRole } from '../../model/metadata.ts'
import type { CommandContext } from '../context.ts'
import { UsageError } from '../failure.ts'
import { plural } from '../output.ts'

export function addClusterCommands(program: Command, context: () => CommandContext): void {
  program
    .command('describe-cluster')
    .description('show the brokers and what they hold')
    .action(async () => describeCluster(context()))
  program
    .command('drain-broker')
    .description('move away what a broker holds, before it is stopped for long')
    .argument('<broker>', 'its number or node id, as describe-cluster shows them')
    .option('--undo', 'let it hold things again')
    .action((broker: string, { undo }: { readonly undo?: true }) =>
      setRole(context(), broker, undo === true ? 'member' : 'draining'),
    )
  program
    .command('remove-broker')
    .description('take a broker out of the cluster for good: it never comes back under its id')
    .argument('<broker>', 'its number or node id, as describe-cluster shows them')
    .option('--yes', 'do not ask')
    .action(async (broker: string, { yes }: { readonly yes?: true }) => {
      const { confirm, signal } = context()
      if (yes !== true) {
        if (confirm === undefined) {
          throw new UsageError(`remove-broker ${broker}: nobody can be asked here; add --yes`)
        }
        if (!(await confirm(`remove broker ${broker} for good?`, signal))) {
          throw new Error(`broker ${broker} was not removed`)
        }
      }
      await setRole(context(), broker, 'removed')
    })
}

const DONE: Readonly<Record<NodeRole, string>> = {
  member: 'is a member again',
  draining: 'is draining: describe-cluster shows what it still holds',
  removed: 'is removed: what it held goes to others',
}

async function setRole(context: CommandContext, named: string, role: NodeRole): Promise<void> {
  const { out, client, call } = context
  const { brokers } = await client.admin().describeCluster(call)
  const broker = brokers.find(
    ({ nodeId, nodeNumber }) => nodeId === named || String(nodeNumber) === named,
  )
  if (broker === undefined) {
    throw new EastGuardError('UNKNOWN_BROKER', `there is no broker '${named}'`)
  }
  await client.admin().setBrokerRole(broker.nodeId, role, call)
  const { nodeId, nodeNumber } = broker
  if (out.json) await out.document({ node_id: nodeId, node_number: nodeNumber, role })
  else await out.line(`broker ${nodeNumber} ${DONE[role]}`)
}

async function describeCluster({ out, client, call }: CommandContext): Promise<void> {
  const info = await client.admin().describeCluster(call)
  if (out.json) {
    await out.document({
      cluster_id: info.clusterId,
      node_id: info.nodeId,
      broker_version: info.brokerVersion,
      topics: info.topics,
      ranges: info.ranges,
      segments: info.segments,
      shards: info.shards,
      shards_led: info.shardsLed,
      brokers: info.brokers.map((broker) => ({
        node_id: broker.nodeId,
        node_number: broker.nodeNumber,
        display_name: broker.displayName,
        host: broker.host,
        client_port: broker.clientPort,
        state: broker.state,
        role: broker.role,
        host_label: broker.hostLabel,
        shards: broker.shards,
        leads: broker.leads,
        version: broker.version,
        disk_total_bytes: broker.diskTotalBytes,
        disk_free_bytes: broker.diskFreeBytes,
      })),
    })
    return
  }
  await out.line(
    `cluster ${info.clusterId}: ${plural(info.topics, 'topic')}, ${plural(info.ranges, 'range')}, ${plural(info.segments, 'segment')}`,
  )
  await out.table(
    ['node', 'name', 'address', 'state', 'shards', 'leads', 'node id'],
    info.brokers.map((broker) => [
      broker.nodeNumber,
      broker.displayName,
      `${broker.host}:${broker.clientPort}`,
      broker.role === 'member' ? broker.state : `${broker.state}, ${broker.role}`,
      broker.shards,
      broker.leads,
      broker.nodeId,
    ]),
  )
}

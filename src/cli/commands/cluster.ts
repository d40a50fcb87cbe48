// What the cluster is and who is in it.

import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { plural } from '../output.ts'

export function addClusterCommands(program: Command, context: () => CommandContext): void {
  program
    .command('describe-cluster')
    .description('show the brokers and what they hold')
    .action(async () => describeCluster(context()))
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
      brokers: info.brokers.map((broker) => ({
        node_id: broker.nodeId,
        node_number: broker.nodeNumber,
        display_name: broker.displayName,
        host: broker.host,
        client_port: broker.clientPort,
        alive: broker.alive,
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
    ['node', 'name', 'address', 'alive', 'node id'],
    info.brokers.map((broker) => [
      broker.nodeNumber,
      broker.displayName,
      `${broker.host}:${broker.clientPort}`,
      broker.alive ? 'yes' : 'no',
      broker.nodeId,
    ]),
  )
}

// `eastguard server`, the very command, as a member of a cluster that its parent process forms by hand: the first word is
// how it begins (ClusterStart as JSON), and commands come later as messages of the parent.
//
//   node cluster-broker-main.js '{"port":0,"neighbours":[]}' server --data-dir ...

import type { Neighbour } from '../../src/broker/options.ts'
import { rootCommand } from '../../src/cli/grammar.ts'
import { addServerCommand, type Special } from '../../src/cli/server/server-command.ts'
import type { Refusal } from '../../src/model/raft.ts'
import type {
  ClusterCommand,
  ClusterReport,
  ClusterStart,
  MembershipStep,
} from './cluster-commands.ts'

type Part = Parameters<NonNullable<Special['onMetadata']>>[0]

const [first = '', ...words] = process.argv.slice(2)
const start = JSON.parse(first) as ClusterStart
let neighbours: readonly Neighbour[] = start.neighbours

function tell(report: ClusterReport): void {
  process.send?.(report)
}

function onMetadata({ nodeId, cluster, shards }: Part): void {
  process.on('message', (command: ClusterCommand) => obey(command, shards))
  if (cluster !== undefined) tell({ kind: 'member', nodeId, cluster })
}

function obey(command: ClusterCommand, shards: Part['shards']): void {
  switch (command.kind) {
    case 'neighbours':
      neighbours = command.neighbours
      return
    case 'look': {
      const views = Array.from({ length: shards.count }, (_, i) => shards.view(i) ?? null)
      return tell({ kind: 'views', id: command.id, views })
    }
    case 'steps': {
      const refusals = command.steps.map((one) => begin(one, shards) ?? null)
      return tell({ kind: 'begun', id: command.id, refusals })
    }
  }
}

function begin({ shard, step }: MembershipStep, shards: Part['shards']): Refusal | undefined {
  if (step.kind === 'hand-over') return shards.handOver(shard, step.node)
  return shards.change(shard, step)
}

// Nobody is left to stop it.
process.once('disconnect', () => process.exit())

const program = rootCommand('eastguard')
addServerCommand(program, process.env, {
  onMetadata,
  cluster: {
    port: start.port,
    ...(start.joins !== undefined && { joins: start.joins }),
    neighbours: () => neighbours,
  },
})
await program.parseAsync(words, { from: 'user' })

// What the cluster is and who is in it.

import { setTimeout } from 'node:timers/promises'
import type { Command } from 'commander'
import { EastGuardError } from '../../base/errors.ts'
import type { BrokerInfo, ClusterInfo } from '../../client/api.ts'
import type { BrokerView, NodeRole } from '../../model/metadata.ts'
import type { CommandContext } from '../context.ts'
import { throwIfInterrupted, UsageError } from '../failure.ts'
import { plural } from '../output.ts'
import { wholeNumber } from './arguments.ts'
import { leaderless, unsettled } from './settled.ts'

/** Moves come in waves, and between two of them all may look well. */
const STILL_MS = 3000
/** While a cluster is waited for. */
const LOOK_AGAIN_MS = 250
/** How often a person is told what is waited for. */
const TELL_MS = 2000

export function addClusterCommands(program: Command, context: () => CommandContext): void {
  program
    .command('describe-cluster')
    .description('show the brokers and what they hold')
    .option(
      '--wait <seconds>',
      'first wait, at most so long, until the cluster has settled; fail when it has not',
      wholeNumber(1),
    )
    .action(async ({ wait }: { readonly wait?: number }) => describeCluster(context(), wait))
  program
    .command('drain-broker')
    .description('move away what a broker holds, before it is stopped for long')
    .argument('<broker>', 'its number, name or node id, as describe-cluster shows them')
    .option('--undo', 'let it hold things again')
    .action((broker: string, { undo }: { readonly undo?: true }) =>
      setRole(context(), broker, undo === true ? 'member' : 'draining'),
    )
  program
    .command('remove-broker')
    .description('take a broker out of the cluster for good: it never comes back under its id')
    .argument('<broker>', 'its number, name or node id, as describe-cluster shows them')
    .option('--yes', 'do not ask')
    .action(async (broker: string, { yes }: { readonly yes?: true }) => {
      const { confirm, signal, out } = context()
      if (yes !== true && confirm === undefined) {
        throw new UsageError(`remove-broker ${broker}: nobody can be asked here; add --yes`)
      }
      for (const loss of await lossesOf(context(), broker)) {
        out.note(`${out.red('warning:')} ${loss}`)
      }
      if (yes !== true && !(await confirm?.(`remove broker ${broker} for good?`, signal))) {
        throw new Error(`broker ${broker} was not removed`)
      }
      await setRole(context(), broker, 'removed')
    })
}

const DONE: Readonly<Record<NodeRole, string>> = {
  member: 'is a member again',
  draining: 'is draining: describe-cluster shows what it still holds',
  removed:
    'is removed for good: what it holds goes to others; when it holds nothing it stops by itself, if it runs',
}

/** What goes, or may go, with the broker, in sentences. */
async function lossesOf(context: CommandContext, named: string): Promise<readonly string[]> {
  const { client, call } = context
  const { brokers } = await client.admin().describeCluster(call)
  const { nodeId, nodeNumber, state, role } = brokerNamed(named, brokers)
  const losses: string[] = []
  if (state === 'alive' && role === 'member') {
    losses.push(`broker ${nodeNumber} is alive and was not drained; drain-broker comes first`)
  }
  const alone = await keptAlone(context, nodeId)
  if (alone === undefined) {
    losses.push('too little of the metadata can be read to say which records only it keeps')
  } else if (alone > 0) {
    losses.push(
      `the records of ${plural(alone, 'topic')} are kept by broker ${nodeNumber} alone, and are lost with it`,
    )
  }
  return losses
}

/** Topics of which only this broker has some records. Undefined: the metadata cannot be had. */
async function keptAlone(
  { client, call }: CommandContext,
  nodeId: BrokerView['nodeId'],
): Promise<number | undefined> {
  try {
    const topics = await client.admin().describeTopics(undefined, call)
    const segments = topics.map(({ ranges }) => ranges.flatMap((range) => range.segments))
    return segments.filter((all) =>
      all.some(({ replicas }) => replicas.every((replica) => replica === nodeId)),
    ).length
  } catch (error) {
    if (!(error instanceof EastGuardError) || !error.retriable) throw error
    return undefined
  }
}

async function setRole(context: CommandContext, named: string, role: NodeRole): Promise<void> {
  const { out, client, call } = context
  const { brokers } = await client.admin().describeCluster(call)
  const broker = brokerNamed(named, brokers)
  await client.admin().setBrokerRole(broker.nodeId, role, call)
  const { nodeId, nodeNumber, displayName } = broker
  if (out.json) await out.document({ node_id: nodeId, node_number: nodeNumber, role })
  else await out.line(`broker ${nodeNumber} (${displayName}) ${DONE[role]}`)
}

/** Names are given by people, so that one may belong to several brokers. */
function brokerNamed<T extends BrokerView>(named: string, brokers: readonly T[]): T {
  const byId = brokers.find(
    ({ nodeId, nodeNumber }) => nodeId === named || String(nodeNumber) === named,
  )
  if (byId !== undefined) return byId
  const [first, second] = brokers.filter(({ displayName }) => displayName === named)
  if (first === undefined) {
    throw new EastGuardError('UNKNOWN_BROKER', `there is no broker '${named}'`)
  }
  if (second !== undefined) {
    const { nodeNumber: a } = first
    throw new UsageError(
      `brokers ${a} and ${second.nodeNumber} are both named ${named}; give a number`,
    )
  }
  return first
}

async function describeCluster(context: CommandContext, waitS: number = 0): Promise<void> {
  const { client, call } = context
  const info =
    waitS === 0
      ? await client.admin().describeCluster(call)
      : await settledWithin(context, waitS * 1000)
  await show(context, info)
  const reasons = unsettled(info)
  if (waitS > 0 && reasons.length > 0) {
    throw new EastGuardError(
      'TIMEOUT',
      `the cluster has not settled within ${waitS} s: ${reasons.join('; ')}`,
    )
  }
}

/** The cluster when it has settled and stayed so for a moment, or as it is when the time is over. */
async function settledWithin(
  { client, call, signal, out }: CommandContext,
  withinMs: number,
): Promise<ClusterInfo> {
  const deadline = performance.now() + withinMs
  let stillSince = performance.now()
  let tellAt = stillSince
  let shares = ''
  for (;;) {
    const info = await client.admin().describeCluster(call)
    const reasons = unsettled(info)
    const now = performance.now()
    const [before, held] = [shares, info.brokers.map((broker) => [broker.shards, broker.leads])]
    shares = held.join()
    if (shares !== before || reasons.length > 0) stillSince = now
    if (now >= deadline || now - stillSince >= STILL_MS) return info
    if (reasons.length > 0 && now >= tellAt) {
      tellAt = now + TELL_MS
      out.note(`waiting: ${reasons.join('; ')}`)
    }
    await rest(LOOK_AGAIN_MS, signal)
  }
}

/** Rejects with ABORTED when the signal fires. */
async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => throwIfInterrupted(signal))
}

function howOf({ state, role, diskFull }: BrokerInfo): string {
  return [state, role === 'member' ? '' : role, diskFull ? 'disk full' : '']
    .filter((word) => word !== '')
    .join(', ')
}

async function show({ out }: CommandContext, info: ClusterInfo): Promise<void> {
  const reasons = unsettled(info)
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
      under_replicated: info.underReplicated,
      unavailable: info.unavailable,
      issues: info.issues.map((issue) => ({ ...issue })),
      settled: reasons.length === 0,
      unsettled: reasons,
      brokers: info.brokers.map((broker) => ({
        node_id: broker.nodeId,
        node_number: broker.nodeNumber,
        display_name: broker.displayName,
        host: broker.host,
        client_port: broker.clientPort,
        state: broker.state,
        role: broker.role,
        host_label: broker.hostLabel,
        rack_label: broker.rackLabel,
        shards: broker.shards,
        leads: broker.leads,
        // Only the broker that answers knows these, and of itself.
        version: broker.version === '' ? null : broker.version,
        disk_total_bytes: broker.diskTotalBytes === 0 ? null : broker.diskTotalBytes,
        disk_free_bytes: broker.diskTotalBytes === 0 ? null : broker.diskFreeBytes,
        disk_full: broker.diskFull,
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
      howOf(broker),
      broker.shards,
      broker.leads,
      broker.nodeId,
    ]),
  )
  if (info.shardsLed < info.shards) {
    const which = leaderless(info.shards - info.shardsLed, info.shards)
    out.note(
      `${out.red('warning:')} ${which}: requests for their topics fail with METADATA_UNAVAILABLE until most brokers that keep them run`,
    )
  }
  for (const { topic, range, segment, kind, why } of info.issues) {
    const what = kind === 'unavailable' ? 'cannot be written' : 'has too few replicas'
    out.note(`${out.red('warning:')} ${topic}, range ${range} ${what}: segment ${segment}: ${why}`)
  }
  const more = info.unavailable + info.underReplicated - info.issues.length
  if (more > 0) out.note(`and ${plural(more, 'range')} more`)
  await out.line(reasons.length === 0 ? 'settled' : `not settled: ${reasons.join('; ')}`)
}

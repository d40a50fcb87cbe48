// Ending a segment that no broker can end: a person is shown what is there, and what goes for good, before anything is done.
//
//   who has how much, and why that may not be all        what would be lost, as far as anybody can say
//   yes ──> decided ──> the successor opens              from which offsets on it was lost

import { setTimeout } from 'node:timers/promises'
import type { Command } from 'commander'
import type { ForceableEnd } from '../../client/api.ts'
import type { NodeId } from '../../model/ids.ts'
import type { BrokerView, RangeView } from '../../model/metadata.ts'
import type { CommandContext } from '../context.ts'
import { throwIfInterrupted, UsageError } from '../failure.ts'
import { plural } from '../output.ts'
import { wholeNumber } from './arguments.ts'

/** For the successor to open. */
const OPENS_WITHIN_MS = 10_000
const LOOK_AGAIN_MS = 100
/** In a sentence; a wide range may have thousands. */
const PARTITIONS_SHOWN = 8

interface Options {
  readonly end?: number
  readonly yes?: true
}

export function addForceEndCommand(program: Command, context: () => CommandContext): void {
  program
    .command('force-end')
    .description('end a segment that no broker can end, and give up what lies behind that')
    .argument('<topic>')
    .argument(
      '<range>',
      'its number, as describe-topic and describe-cluster show it',
      wholeNumber(0),
    )
    .option(
      '--end <entries>',
      'how many entries are kept; default: all that one broker has',
      wholeNumber(0),
    )
    .option('--yes', 'do not ask')
    .action((topic: string, range: number, options: Options) =>
      forceEnd(context(), topic, range, options),
    )
}

async function forceEnd(
  context: CommandContext,
  topic: string,
  number: number,
  { end: asked, yes }: Options,
): Promise<void> {
  const { client, call, confirm, signal, out } = context
  const admin = client.admin()
  const known = await admin.describeForcedEnd(topic, number, call)
  const { segment } = known
  const range = await rangeOf(context, topic, number)
  const { brokers } = await admin.describeCluster(call)
  const end = asked ?? Math.max(...known.answers.map((one) => one.end))
  const what = `segment ${segment} of topic ${topic}, range ${number}`
  if (known.answers.length === 0) {
    const missing = known.silent.map((node) => nameOf(node, brokers)).join(', ')
    throw new Error(`${what} cannot be ended: one of its replicas must run, ${missing}`)
  }
  const losses = lossesOf(known, end, brokers)
  if (!out.json) {
    const { firstPartition, endPartition } = range
    await out.line(`${what}: partitions ${firstPartition} to ${endPartition - 1}`)
    await out.table(['broker', 'entries', 'sure'], answersOf(known, brokers))
  }
  for (const loss of losses) out.note(`${out.red('lost:')} ${loss}`)
  out.note(`kept: ${keptOf(range)}`)
  if (yes !== true && confirm === undefined) {
    throw new UsageError(`force-end ${topic} ${number}: nobody can be asked here; add --yes`)
  }
  if (
    yes !== true &&
    !(await confirm?.(`end ${what} behind ${plural(end, 'entry', 'entries')}?`, signal))
  ) {
    throw new Error(`${what} was not ended`)
  }
  await admin.forceEnd(topic, number, { segment, end }, call)
  await report(context, { topic, number, segment, end, known, losses })
}

function answersOf(
  { answers, silent }: ForceableEnd,
  brokers: readonly BrokerView[],
): readonly (readonly [string, string | number, string])[] {
  return [
    ...answers.map(({ node, end, unsure }) => {
      return [nameOf(node, brokers), end, unsure === undefined ? 'yes' : `no: ${unsure}`] as const
    }),
    ...silent.map((node) => [nameOf(node, brokers), '?', 'does not answer'] as const),
  ]
}

/** What goes, or may go, in sentences: the most certain first. */
function lossesOf(
  { answers, silent, highWatermark }: ForceableEnd,
  end: number,
  brokers: readonly BrokerView[],
): readonly string[] {
  const losses: string[] = []
  if (highWatermark > end) {
    losses.push(
      `${entriesFrom(end, highWatermark)}: readers had them, and producers may have been told that they are safe`,
    )
  }
  for (const { node, end: held } of answers) {
    const from = Math.max(end, highWatermark)
    if (held <= from) continue
    losses.push(`${entriesFrom(from, held)}, which ${nameOf(node, brokers)} has`)
  }
  const unsure = answers.filter((one) => one.unsure !== undefined).map(({ node }) => node)
  const others = [...silent, ...unsure].map((node) => nameOf(node, brokers)).join(', ')
  if (others !== '') {
    losses.push(
      `whatever else ${others} had from entry ${Math.max(end, highWatermark)} on, acknowledged or not: how much nobody can say`,
    )
  }
  return losses
}

/** How many records are in an entry, and of which partition, is not known before somebody has read them. */
function keptOf({ firstPartition, segments }: RangeView): string {
  const starts = segments.at(-1)?.firstOffsets ?? []
  const least = starts.map((offset, i) => `${offset} of partition ${firstPartition + i}`)
  const shown = least.slice(0, PARTITIONS_SHOWN).join(', ')
  const more = least.length > PARTITIONS_SHOWN ? ', and so on' : ''
  return `all below offset ${shown}${more}; up to which offset behind that shows when the segment has ended`
}

function entriesFrom(from: number, end: number): string {
  return end - from === 1 ? `entry ${from}` : `${end - from} entries, ${from} to ${end - 1}`
}

interface Forced {
  readonly topic: string
  readonly number: number
  readonly segment: number
  readonly end: number
  readonly known: ForceableEnd
  readonly losses: readonly string[]
}

async function report(context: CommandContext, forced: Forced): Promise<void> {
  const { out } = context
  const { topic, number, segment, end, known, losses } = forced
  const range = await succeeded(context, forced)
  const next = range?.segments.find((one) => one.segment === segment + 1)
  const first = range?.firstPartition ?? 0
  const kept = (next?.firstOffsets ?? []).map((offset, i) => ({ partition: first + i, offset }))
  if (out.json) {
    await out.document({
      topic,
      range: number,
      segment,
      end_entry: end,
      high_watermark: known.highWatermark,
      answers: known.answers.map((one) => ({
        node_id: one.node,
        entries: one.end,
        unsure: one.unsure ?? null,
      })),
      silent: [...known.silent],
      lost: [...losses],
      ended: next !== undefined,
      next_offsets: next === undefined ? null : kept,
    })
    return
  }
  if (next === undefined) {
    await out.line(
      `decided, and its successor is not open yet: describe-topic ${topic} shows when it is, describe-cluster what it waits for`,
    )
    return
  }
  await out.line(`segment ${segment} has ended behind ${plural(end, 'entry', 'entries')}`)
  await out.table(
    ['partition', 'lost from offset'],
    kept.map(({ partition, offset }) => [partition, offset]),
  )
  await out.line('records below these offsets are kept; new ones get the offsets from there on')
}

/** The range when the segment has a successor; undefined when it has none in time. */
async function succeeded(
  context: CommandContext,
  { topic, number, segment }: Forced,
): Promise<RangeView | undefined> {
  const { signal } = context
  const deadline = performance.now() + OPENS_WITHIN_MS
  while (performance.now() < deadline) {
    const range = await rangeOf(context, topic, number)
    if (range.segments.some((one) => one.segment > segment)) return range
    await setTimeout(LOOK_AGAIN_MS, undefined, { signal }).catch(() => throwIfInterrupted(signal))
  }
  return undefined
}

async function rangeOf(
  { client, call }: CommandContext,
  topic: string,
  number: number,
): Promise<RangeView> {
  const { ranges } = await client.admin().describeTopic(topic, call)
  const range = ranges.find((one) => one.range === number)
  if (range === undefined) throw new UsageError(`topic ${topic} has no range ${number}`)
  return range
}

function nameOf(node: NodeId, brokers: readonly BrokerView[]): string {
  const broker = brokers.find(({ nodeId }) => nodeId === node)
  return broker === undefined ? node : `broker ${broker.nodeNumber} (${broker.displayName})`
}

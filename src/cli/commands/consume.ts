// Records to standard output. Without a count or --follow it ends at the end as it was when it began; batches come
// through the consumer's bounded prefetch and leave with the back-pressure of standard output, so memory stays flat.

import type { Command } from 'commander'
import { EastGuardError } from '../../base/errors.ts'
import type {
  ConsumeFrom,
  Consumer,
  ConsumerBatch,
  ConsumerOptions,
  ConsumerRecord,
} from '../../client/api.ts'
import { MIB } from '../../model/policy.ts'
import type { CommandContext } from '../context.ts'
import { UsageError } from '../failure.ts'
import { RawLines } from '../lines.ts'
import { type Json, jsonBytes, type Output, showBytes } from '../output.ts'
import { duration, wholeNumber } from './arguments.ts'

interface ConsumeOptions {
  readonly partition?: number
  readonly offset?: number
  readonly follow?: true
  readonly raw?: true
  readonly timeoutMs?: number
}

export function addConsumeCommand(program: Command, context: () => CommandContext): void {
  program
    .command('consume')
    .description('read records')
    .argument('<topic>')
    .argument('[from]', 'earliest, latest or @TIMESTAMP (ms since 1970, or a date)', 'earliest')
    .argument('[count]', 'end after so many records, waiting for them', wholeNumber(1))
    .option('--partition <P>', 'read this partition only', wholeNumber(0))
    .option('--offset <N>', 'begin at this offset (with --partition)', wholeNumber(0))
    .option('--follow', 'wait for further records at the end')
    .option('--raw', 'write values only, each followed by a newline')
    .option('--timeout-ms <ms>', 'end when no record has come for so long', duration)
    .addHelpText(
      'after',
      `
Without a count and without --follow it ends at the end as it was when it began. With a count it waits for that many
records; when --timeout-ms ends the wait early, the command fails.`,
    )
    .action(
      async (topic: string, from: string, count: number | undefined, options: ConsumeOptions) => {
        await consume(context(), topic, from, count, options)
      },
    )
}

/** How long a broker may be away before a command that ends by itself gives up. */
const UNAVAILABLE_MS = 10_000
/** Enough to keep standard output busy, little enough to go unnoticed. */
const PREFETCH_BYTES: number = 4 * MIB

async function consume(
  context: CommandContext,
  topic: string,
  from: string,
  count: number | undefined,
  options: ConsumeOptions,
): Promise<void> {
  const { out, client, signal, call } = context
  const start = startOf(from, options)
  // Tells at once when there is no broker or no such topic; a consumer would go on trying.
  await client.admin().describeTopic(topic, call)
  const endless = options.follow === true || count !== undefined
  const consumer = client.consumer({
    ...({
      topic,
      stopAtEnd: !endless,
      from: start,
      signal,
    } satisfies ConsumerOptions),
    ...(options.follow === true ? {} : { unavailableTimeoutMs: UNAVAILABLE_MS }),
    prefetchBytes: PREFETCH_BYTES,
    ...(options.partition === undefined ? {} : { partitions: [options.partition] }),
  })
  await using _closing = consumer
  const progress = out.terminal || options.follow === true ? undefined : out.progress(0, 'records')
  const raw = options.raw === true ? new RawLines(out) : undefined
  let left = count ?? Number.POSITIVE_INFINITY
  let done = 0
  try {
    for await (const batch of withIdleLimit(consumer, options.timeoutMs)) {
      const records = batch.records.length > left ? batch.records.slice(0, left) : batch.records
      await writeRecords(out, records, raw)
      left -= records.length
      done += records.length
      progress?.update(done, '')
      if (left === 0) break
    }
  } finally {
    progress?.stop()
  }
  if (count !== undefined && left > 0) {
    throw new EastGuardError(
      'TIMEOUT',
      `${done} of ${count} records came from ${topic} before ${options.timeoutMs} ms passed without one`,
    )
  }
}

function startOf(from: string, options: ConsumeOptions): ConsumeFrom {
  if (options.offset !== undefined) {
    if (options.partition === undefined) throw new UsageError('--offset needs --partition')
    return { offset: options.offset }
  }
  if (from === 'earliest' || from === 'latest') return from
  if (from.startsWith('@')) {
    const text = from.slice(1)
    const timestampMs = /^\d+$/.test(text) ? Number(text) : Date.parse(text)
    if (Number.isSafeInteger(timestampMs)) return { timestampMs }
  }
  throw new UsageError(`'${from}' is none of earliest, latest and @TIMESTAMP`)
}

/** The consumer's batches; ends when none has come for `idleMs`. */
async function* withIdleLimit(
  consumer: Consumer,
  idleMs: number | undefined,
): AsyncGenerator<ConsumerBatch> {
  if (idleMs === undefined) {
    yield* consumer.batches()
    return
  }
  const batches = consumer.batches()[Symbol.asyncIterator]()
  while (true) {
    let timer: NodeJS.Timeout | undefined
    const idle = new Promise<'idle'>((resolve) => {
      timer = setTimeout(resolve, idleMs, 'idle')
    })
    const next = batches.next()
    const first = await Promise.race([next, idle])
    clearTimeout(timer)
    if (first === 'idle') {
      await consumer.close()
      // Closing ends the wait for the next batch; however it ends, nobody waits for it any more.
      await next.catch(() => {})
      return
    }
    if (first.done === true) return
    yield first.value
  }
}

async function writeRecords(
  out: Output,
  records: readonly ConsumerRecord[],
  raw: RawLines | undefined,
): Promise<void> {
  if (raw !== undefined) {
    for (const { value } of records) {
      const full = raw.line(value)
      if (full !== undefined) await full
    }
    await raw.flush()
    return
  }
  let text = ''
  for (const record of records) {
    text += out.json ? `${JSON.stringify(recordJson(record))}\n` : `${recordLine(record)}\n`
  }
  await out.write(text)
}

function recordLine({ partition, offset, timestamp, key, value }: ConsumerRecord): string {
  const time = new Date(timestamp).toISOString()
  return `${partition}:${offset}  ${time}  ${showBytes(key)}  ${showBytes(value)}`
}

function recordJson(record: ConsumerRecord): Json {
  return {
    topic: record.topic,
    partition: record.partition,
    offset: record.offset,
    timestamp_ms: record.timestamp,
    ...jsonBytes('key', record.key),
    ...jsonBytes('value', record.value),
    headers: record.headers.map(({ key, value }) => ({ name: key, ...jsonBytes('value', value) })),
  }
}

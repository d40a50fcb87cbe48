// How fast is it from here? Throughput closed-loop; with --rate open-loop, where latency counts from the moment a
// record should have been sent, so that a stall is not hidden. `npm run bench` asks more precisely.

import { type Command, Option } from 'commander'
import { build, type Histogram } from 'hdr-histogram-js'
import { CODECS, type Codec } from '../../base/codec.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Producer } from '../../client/api.ts'
import { ACKS, type Acks } from '../../model/policy.ts'
import type { CommandContext } from '../context.ts'
import { size, wholeNumber } from './arguments.ts'

const REPORT_EVERY_MS = 200

interface ProduceOptions {
  readonly records: number
  readonly size: number
  readonly rate?: number
  readonly codec: Codec
  readonly acks?: Acks
  readonly inFlight: number
}

export function addPerfCommand(program: Command, context: () => CommandContext): void {
  const perf = program.command('perf').description('measure throughput and latency')
  perf
    .command('produce')
    .description('write records as fast as they are stored, or at a rate')
    .argument('<topic>')
    .option('--records <N>', 'how many', wholeNumber(1), 100_000)
    .option('--size <bytes>', 'bytes of each value', size, 100)
    .option(
      '--rate <N>',
      'records per second; latency counts from the intended time',
      wholeNumber(1),
    )
    .option('--in-flight <N>', 'records not yet stored, at most', wholeNumber(1), 10_000)
    .addOption(new Option('--codec <codec>', 'compression').choices(CODECS).default('none'))
    .addOption(new Option('--acks <acks>', "default: the topic's").choices(ACKS))
    .action(async (topic: string, options: ProduceOptions) => {
      await perfProduce(context(), topic, options)
    })
  perf
    .command('consume')
    .description('read a topic from its earliest records to its present end')
    .argument('<topic>')
    .option('--records <N>', 'end after so many', wholeNumber(1))
    .action(async (topic: string, options: { readonly records?: number }) => {
      await perfConsume(context(), topic, options.records ?? Number.POSITIVE_INFINITY)
    })
}

async function perfProduce(
  context: CommandContext,
  topic: string,
  options: ProduceOptions,
): Promise<void> {
  const { out, client, signal, call } = context
  await client.admin().describeTopic(topic, call)
  const producer = client.producer({
    codec: options.codec,
    ...(options.acks === undefined ? {} : { acks: options.acks }),
  })
  // Microseconds, three significant digits, up to ten minutes.
  const latency = build({ highestTrackableValue: 600_000_000, numberOfSignificantValueDigits: 3 })
  const progress = out.progress(options.records, 'records')
  const started = performance.now()
  try {
    await runLoad(producer, topic, options, signal, latency, (done) => {
      progress.update(done, rateText(done, performance.now() - started))
    })
  } finally {
    progress.stop()
    await producer.close()
  }
  const seconds = (performance.now() - started) / 1000
  await report(
    context,
    'produce',
    options.records,
    options.records * options.size,
    seconds,
    latency,
  )
}

function runLoad(
  producer: Producer,
  topic: string,
  options: ProduceOptions,
  signal: AbortSignal,
  latency: Histogram,
  onProgress: (done: number) => void,
): Promise<void> {
  const { records, rate, inFlight } = options
  const value = Buffer.alloc(options.size, 'eastguard ')
  const start = performance.now()
  let sent = 0
  let done = 0
  return new Promise((resolve, reject) => {
    let failed = false
    const timer = setInterval(() => {
      onProgress(done)
      if (signal.aborted) fail(new EastGuardError('ABORTED', 'the command was interrupted'))
    }, REPORT_EVERY_MS)
    const fail = (error: unknown): void => {
      failed = true
      clearInterval(timer)
      reject(error instanceof Error ? error : new Error(String(error)))
    }
    const sendOne = (): void => {
      const intended = rate === undefined ? performance.now() : start + (sent * 1000) / rate
      sent++
      producer.send({ topic, value }).then(() => {
        latency.recordValue(Math.max(1, Math.round((performance.now() - intended) * 1000)))
        done++
        if (failed) return
        if (done === records) {
          clearInterval(timer)
          resolve()
        } else if (rate === undefined && sent < records) sendOne()
      }, fail)
    }
    if (rate === undefined) {
      while (sent < Math.min(inFlight, records)) sendOne()
      return
    }
    const tick = (): void => {
      if (failed) return
      const due = Math.min(records, Math.floor(((performance.now() - start) * rate) / 1000))
      while (sent < due && sent - done < inFlight) sendOne()
      if (sent < records) setTimeout(tick, 1)
    }
    tick()
  })
}

async function perfConsume(context: CommandContext, topic: string, most: number): Promise<void> {
  const { out, client, signal, call } = context
  await client.admin().describeTopic(topic, call)
  const consumer = client.consumer({ topic, stopAtEnd: true, signal })
  const progress = out.progress(Number.isFinite(most) ? most : 0, 'records')
  const started = performance.now()
  let records = 0
  let bytes = 0
  try {
    for await (const batch of consumer.batches()) {
      for (const record of batch.records) {
        bytes += (record.value?.length ?? 0) + (record.key?.length ?? 0)
        if (++records >= most) break
      }
      progress.update(records, rateText(records, performance.now() - started))
      if (records >= most) break
    }
  } finally {
    progress.stop()
    await consumer.close()
  }
  const seconds = (performance.now() - started) / 1000
  await report(context, 'consume', records, bytes, seconds, undefined)
}

function rateText(records: number, ms: number): string {
  return ms <= 0 ? '' : `${Math.round((records * 1000) / ms)} records/s`
}

async function report(
  { out }: CommandContext,
  what: string,
  records: number,
  bytes: number,
  seconds: number,
  latency: Histogram | undefined,
): Promise<void> {
  const perSecond = Math.round(records / seconds)
  const mibPerSecond = bytes / seconds / 1024 / 1024
  const at = (percentile: number): number => (latency?.getValueAtPercentile(percentile) ?? 0) / 1000
  if (out.json) {
    const percentiles =
      latency === undefined
        ? {}
        : { p50_ms: at(50), p99_ms: at(99), p999_ms: at(99.9), max_ms: latency.maxValue / 1000 }
    await out.document({
      perf: what,
      records,
      bytes,
      seconds,
      records_per_second: perSecond,
      mib_per_second: mibPerSecond,
      ...percentiles,
    })
    return
  }
  await out.table(
    ['records', 'seconds', 'records/s', 'MiB/s'],
    [[records, seconds.toFixed(2), perSecond, mibPerSecond.toFixed(1)]],
  )
  if (latency === undefined) return
  await out.table(
    ['latency', 'p50', 'p99', 'p99.9', 'max'],
    [['ms', at(50), at(99), at(99.9), latency.maxValue / 1000]],
  )
}

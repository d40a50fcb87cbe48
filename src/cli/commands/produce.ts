// Standard input to a topic, one record per line, any bytes. Lines of a chunk go to the producer together, and only a
// bounded number of chunks waits for its answer, so that an input of any length passes through little memory.

import { createReadStream, fstatSync, openSync, statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { type Command, Option } from 'commander'
import { CODECS, type Codec } from '../../base/codec.ts'
import type { Producer, ProducerRecord } from '../../client/api.ts'
import { ACKS, type Acks, MIB } from '../../model/policy.ts'
import type { CommandContext } from '../context.ts'
import { throwIfInterrupted, UsageError } from '../failure.ts'
import { linesOf } from '../lines.ts'
import { plural } from '../output.ts'
import { wholeNumber } from './arguments.ts'

const CHUNKS_WAITING_MAX = 8
const LINE_BYTES_MAX: number = 64 * MIB

interface ProduceOptions {
  readonly keyField?: number
  readonly delimiter: string
  readonly file?: string
  readonly partition?: number
  readonly codec: Codec
  readonly acks?: Acks
}

export function addProduceCommand(program: Command, context: () => CommandContext): void {
  program
    .command('produce')
    .description('write standard input, one record per line')
    .argument('<topic>')
    .option('--key-field <N>', 'the key is the N-th field of the line, from 1', wholeNumber(1))
    .option('--delimiter <C>', 'what separates the fields', '\t')
    .option('--file <path>', 'read this file instead of standard input')
    .option('--partition <P>', 'write to this partition', wholeNumber(0))
    .addOption(new Option('--codec <codec>', 'compression').choices(CODECS).default('none'))
    .addOption(new Option('--acks <acks>', "default: the topic's").choices(ACKS))
    .addHelpText(
      'after',
      `
The value is the whole line without its newline, any bytes; the last line needs no newline. With --key-field a line that
has no such field stops the command. When it fails it says how many records were stored.`,
    )
    .action(async (topic: string, options: ProduceOptions) => {
      await produce(context(), topic, options)
    })
}

async function produce(
  context: CommandContext,
  topic: string,
  options: ProduceOptions,
): Promise<void> {
  const { out, client, signal, call } = context
  const input = inputOf(context, options.file)
  const makeRecord = recordMaker(topic, options)
  // Tells at once when there is no broker or no such topic; a producer would go on trying.
  await client.admin().describeTopic(topic, call)
  const producer = client.producer({
    codec: options.codec,
    ...(options.acks === undefined ? {} : { acks: options.acks }),
  })
  const totalBytes = inputBytes(options.file)
  const progress = out.progress(totalBytes, totalBytes > 0 ? 'bytes' : 'records')
  const feeder = new Feeder(producer, signal)
  let bytes = 0
  let lineNumber = 0
  const started = performance.now()
  // Ends the wait for further input.
  signal.addEventListener('abort', () => input.destroy(), { once: true })
  try {
    for await (const lines of linesOf(input, LINE_BYTES_MAX)) {
      const records: ProducerRecord[] = []
      for (const line of lines) {
        records.push(makeRecord(line, ++lineNumber))
        bytes += line.length + 1
      }
      await feeder.send(records)
      progress.update(
        totalBytes > 0 ? bytes : feeder.stored,
        `${plural(feeder.stored, 'record')} stored`,
      )
    }
    await feeder.settled()
  } catch (error) {
    await Promise.allSettled([producer.close()])
    out.note(`${plural(feeder.stored, 'record')} stored before this`)
    // The input that was destroyed for it complains of that.
    throwIfInterrupted(signal)
    throw error
  } finally {
    progress.stop()
    input.destroy()
    await producer.close()
  }
  const seconds = (performance.now() - started) / 1000
  if (out.json) await out.document({ topic, records: feeder.stored, bytes, seconds })
  else out.note(`${plural(feeder.stored, 'record')} stored in ${seconds.toFixed(1)} s`)
}

function inputOf({ stdin }: CommandContext, file: string | undefined): Readable {
  if (file !== undefined) return createReadStream('', { fd: openSync(file, 'r') })
  if (stdin === undefined) {
    throw new UsageError(
      "standard input holds the commands here: use 'produce <topic> --file <path>', or run eg-cli produce on its own",
    )
  }
  return stdin
}

/** For a bar that knows its end; 0 when the input is a pipe or a terminal. */
function inputBytes(file: string | undefined): number {
  const stat = file === undefined ? fstatSync(0) : statSync(file)
  return stat.isFile() ? stat.size : 0
}

function recordMaker(
  topic: string,
  options: ProduceOptions,
): (line: Uint8Array, number: number) => ProducerRecord {
  const { keyField, partition } = options
  if (keyField === undefined) {
    return (line) => ({ topic, value: line, partition })
  }
  const delimiter = Buffer.from(unescaped(options.delimiter))
  if (delimiter.length === 0) throw new UsageError('--delimiter is empty')
  return (line, number) => ({
    topic,
    key: fieldOf(line, keyField, delimiter, number),
    value: line,
    partition,
  })
}

/** `\t` typed in a shell is two characters. */
function unescaped(text: string): string {
  return text === '\\t' ? '\t' : text
}

function fieldOf(line: Uint8Array, field: number, delimiter: Buffer, number: number): Uint8Array {
  const view = Buffer.from(line.buffer, line.byteOffset, line.length)
  let from = 0
  for (let i = 1; i < field; i++) {
    const at = view.indexOf(delimiter, from)
    if (at < 0)
      throw new Error(
        `line ${number} has ${plural(i, 'field')}: there is no field ${field} for the key`,
      )
    from = at + delimiter.length
  }
  const end = view.indexOf(delimiter, from)
  return view.subarray(from, end < 0 ? view.length : end)
}

/** Sends chunks with a bounded number of them unanswered; the first failure comes out of the next call. */
class Feeder {
  stored = 0
  private readonly producer: Producer
  private readonly signal: AbortSignal
  private readonly waiting = new Set<Promise<void>>()
  private failure: { readonly error: unknown } | undefined

  constructor(producer: Producer, signal: AbortSignal) {
    this.producer = producer
    this.signal = signal
  }

  async send(records: readonly ProducerRecord[]): Promise<void> {
    this.check()
    const sending = this.producer.sendBatch(records, { signal: this.signal }).then(
      () => {
        this.stored += records.length
      },
      (error: unknown) => {
        this.failure ??= { error }
      },
    )
    const tracked = sending.finally(() => this.waiting.delete(tracked))
    this.waiting.add(tracked)
    while (this.waiting.size >= CHUNKS_WAITING_MAX) await Promise.race(this.waiting)
    this.check()
  }

  async settled(): Promise<void> {
    await this.producer.flush()
    await Promise.all(this.waiting)
    this.check()
  }

  private check(): void {
    throwIfInterrupted(this.signal)
    if (this.failure !== undefined) throw this.failure.error
  }
}

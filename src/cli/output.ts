// Where commands write. Results go to standard output, everything else (progress, notes, errors) to standard error,
// so that a pipe carries results only. With --json results are JSON with the fields that docs/reference/cli.md lists;
// for people they are tables and lines. Colours and progress only where a person looks: on a terminal.

import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { Presets, SingleBar } from 'cli-progress'
import Table from 'cli-table3'
import { fromUtf8 } from '../base/bytes.ts'

export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [key: string]: Json }

export interface OutputOptions {
  readonly stdout: Writable
  readonly stderr: Writable
  /** Is standard output, or standard error, a terminal? */
  readonly stdoutIsTerminal: boolean
  readonly stderrIsTerminal: boolean
  readonly json: boolean
}

export interface Progress {
  /** `done` of the total; `rate` is a short text beside the bar. */
  update(done: number, note: string): void
  stop(): void
}

const SILENT: Progress = { update: () => {}, stop: () => {} }

export class Output {
  readonly json: boolean
  private readonly options: OutputOptions

  constructor(options: OutputOptions) {
    this.options = options
    this.json = options.json
  }

  withJson(): Output {
    return new Output({ ...this.options, json: true })
  }

  get terminal(): boolean {
    return this.options.stdoutIsTerminal
  }

  /** Bytes to standard output; resolves when more may come (back-pressure). */
  async write(bytes: Uint8Array | string): Promise<void> {
    if (!this.options.stdout.write(bytes)) await once(this.options.stdout, 'drain')
  }

  /** Resolves when the bytes have left this process, and may change. */
  written(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.options.stdout.write(bytes, (error) => (error ? reject(error) : resolve()))
    })
  }

  /** Short text that does not wait, such as a help page. */
  print(text: string): void {
    this.options.stdout.write(text)
  }

  async line(text: string): Promise<void> {
    await this.write(`${text}\n`)
  }

  async document(value: Json): Promise<void> {
    await this.line(JSON.stringify(value))
  }

  async table(
    head: readonly string[],
    rows: readonly (readonly (string | number)[])[],
  ): Promise<void> {
    const style = this.options.stdoutIsTerminal ? { head: ['cyan'] } : { head: [], border: [] }
    const table = new Table({
      head: [...head],
      style,
      // No line between rows.
      chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
      colAligns: head.map((_, i) =>
        rows.length > 0 && rows.every((row) => typeof row[i] === 'number') ? 'right' : 'left',
      ),
    })
    for (const row of rows) table.push([...row])
    await this.line(table.toString())
  }

  /** A sentence for a person, on standard error; not with --json. */
  note(text: string): void {
    if (!this.json) this.options.stderr.write(`${text}\n`)
  }

  error(text: string): void {
    this.options.stderr.write(`${text}\n`)
  }

  red(text: string): string {
    return this.options.stderrIsTerminal ? `\u001b[31m${text}\u001b[39m` : text
  }

  /** A bar on standard error; `total` 0 when it is not known. Silent unless a person looks. */
  progress(total: number, unit: string): Progress {
    const { stderr, stderrIsTerminal } = this.options
    if (!stderrIsTerminal || this.json) return SILENT
    const format =
      total > 0
        ? `{bar} {percentage}% | {value}/{total} ${unit} | {note}`
        : `{value} ${unit} | {note}`
    const bar = new SingleBar(
      { format, stream: stderr as NodeJS.WriteStream, hideCursor: true, clearOnComplete: true },
      Presets.shades_classic,
    )
    bar.start(total, 0, { note: '' })
    return {
      update: (done, note) => bar.update(done, { note }),
      stop: () => bar.stop(),
    }
  }
}

/** The text of UTF-8 bytes; undefined for others. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return fromUtf8(bytes)
  } catch {
    return undefined
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
}

/** `{name: text}`, or `{name_base64: ...}` for bytes that are not UTF-8. */
export function jsonBytes(
  name: string,
  bytes: Uint8Array | null,
): { readonly [key: string]: Json } {
  if (bytes === null) return { [name]: null }
  const text = textOf(bytes)
  return text === undefined ? { [`${name}_base64`]: base64(bytes) } : { [name]: text }
}

/** For people: control characters made visible, so that a record cannot steer the terminal. */
export function showBytes(bytes: Uint8Array | null): string {
  if (bytes === null) return '-'
  const text = textOf(bytes)
  return text === undefined ? `base64:${base64(bytes)}` : visible(text)
}

function visible(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) =>
    c === '\n' ? '\\n' : c === '\t' ? '\\t' : `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** `1 topic`, `2 topics`. */
export function plural(count: number, one: string, several: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`
}

export function showBytesCount(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  const units = ['KiB', 'MiB', 'GiB', 'TiB']
  let value = bytes
  let unit = ''
  for (const next of units) {
    if (value < 1024) break
    value /= 1024
    unit = next
  }
  return `${value.toFixed(1)} ${unit}`
}

export function showDuration(ms: number): string {
  for (const [unit, size] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const) {
    if (ms >= size && ms % size === 0) return `${ms / size} ${unit}`
  }
  return `${ms} ms`
}

/** Output to this process's own streams. */
export function terminalOutput(json: boolean): Output {
  const { stdout, stderr } = process
  return new Output({
    stdout,
    stderr,
    stdoutIsTerminal: stdout.isTTY === true,
    stderrIsTerminal: stderr.isTTY === true,
    json,
  })
}

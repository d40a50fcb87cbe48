// The log port over pino: one JSON object per line for programs, or, when a person watches, a line of text.

import { type Logger, pino, stdSerializers } from 'pino'
import type { Log, LogFields, LogLevel } from '../../ports/log.ts'

export interface LogOptions {
  readonly level: LogLevel
  /** Text for people instead of JSON. */
  readonly text: boolean
  readonly write: (line: string) => void
}

export function pinoLog(options: LogOptions): Log {
  const write = options.text ? (line: string): void => options.write(asText(line)) : options.write
  const logger = pino(
    {
      level: options.level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: stdSerializers.err },
    },
    { write },
  )
  return wrap(logger)
}

function wrap(logger: Logger): Log {
  return {
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
    child: (fields: LogFields) => wrap(logger.child(fields)),
  }
}

/** `12:04:05.123 INFO  the message  key=value`. */
function asText(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>
  const words = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const error = isRecord(err) ? `\n${String(err['stack'] ?? err['message'])}` : ''
  const head = `${String(time).slice(11, 23)} ${String(level).toUpperCase().padEnd(5)} ${String(msg)}`
  return `${[head, ...words].join('  ')}${error}\n`
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

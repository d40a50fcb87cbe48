// The log of a broker that runs as a process of its own.

import { pinoLog } from '../io/log/pino-log.ts'
import type { Log, LogLevel } from '../ports/log.ts'

/** Writes to standard error: text when that is a terminal, JSON lines otherwise. */
export function startLog(level: LogLevel): Log {
  return pinoLog({
    level,
    text: process.stderr.isTTY,
    write: (line) => process.stderr.write(line),
  })
}

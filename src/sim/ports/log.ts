// A log that keeps its lines, for tests to look at.

import type { Log, LogFields, LogLevel } from '../../ports/log.ts'

interface LogLine {
  readonly level: LogLevel
  readonly message: string
  readonly fields: LogFields
}

export interface SimLog extends Log {
  readonly lines: readonly LogLine[]
}

export function simLog(): SimLog {
  const lines: LogLine[] = []
  return { ...logInto(lines, {}), lines }
}

function logInto(lines: LogLine[], bound: LogFields): Log {
  const at =
    (level: LogLevel) =>
    (message: string, fields?: LogFields): void => {
      lines.push({ level, message, fields: { ...bound, ...fields } })
    }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => logInto(lines, { ...bound, ...fields }),
  }
}

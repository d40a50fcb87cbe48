// A log that keeps its lines, for tests to look at.

import type { Log, LogFields, LogLevel } from '../../ports/log.ts'

export interface LogLine {
  readonly level: LogLevel
  readonly message: string
  readonly fields: LogFields
}

export interface SimLog extends Log {
  readonly lines: readonly LogLine[]
}

/** `told` hears each line as it is written. */
export function simLog(told: (line: LogLine) => void = () => {}): SimLog {
  const lines: LogLine[] = []
  const keep = (line: LogLine): void => {
    lines.push(line)
    told(line)
  }
  return { ...logInto(keep, {}), lines }
}

function logInto(keep: (line: LogLine) => void, bound: LogFields): Log {
  const at =
    (level: LogLevel) =>
    (message: string, fields?: LogFields): void => {
      keep({ level, message, fields: { ...bound, ...fields } })
    }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => logInto(keep, { ...bound, ...fields }),
  }
}

// A yes or no from a person, who may also press Ctrl-C (the command is interrupted) or end the input (no).

import type { Interface } from 'node:readline'
import { EastGuardError } from '../../base/errors.ts'

/** Rejects with ABORTED when the signal fires. */
export function ask(terminal: Interface, question: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => settle(false)
    const onAbort = (): void => {
      settle(false, new EastGuardError('ABORTED', 'the question was not answered'))
    }
    const settle = (yes: boolean, error?: EastGuardError): void => {
      terminal.off('close', onClose)
      signal.removeEventListener('abort', onAbort)
      if (error === undefined) resolve(yes)
      else reject(error)
    }
    terminal.once('close', onClose)
    signal.addEventListener('abort', onAbort, { once: true })
    terminal.question(`${question} [y/N] `, { signal }, (answer) => {
      settle(/^y(es)?$/i.test(answer.trim()))
    })
    if (signal.aborted) onAbort()
  })
}

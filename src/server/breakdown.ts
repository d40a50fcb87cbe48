// What ends a broker that nobody has asked to stop. Each is told once: to the log, to whoever asks whether the broker is
// ready, and to its owner, who ends the process.
//
//   the disk failed             nothing more is acknowledged; what is there may be started again
//   refused as an older copy    another broker has met a start of this node that this data directory does not know: it was
//                               restored, or copied. That is written into the directory before anybody is told, because a
//                               supervisor starts the broker again, and it must not act under this id then either
//
// A start may wait for others for as long as these are away, so it is here too that it is ended when it should wait no more.

import { EastGuardError } from '../base/errors.ts'
import type { NodeId } from '../model/ids.ts'
import type { Log } from '../ports/log.ts'
import { type DataDir, refusedAsOld } from '../storage/datadir/data-dir.ts'
import { diskHint } from './disk-failure.ts'
import type { BrokerHooks } from './types.ts'

export class Breakdown {
  /** Why the broker is not ready; undefined while it is whole. */
  reason: string | undefined
  private readonly log: Log
  private readonly hooks: BrokerHooks
  /** Why a start that waits should wait no more. */
  private end: Error | undefined
  private onEnd: (error: Error) => void = () => {}

  constructor(log: Log, hooks: BrokerHooks) {
    this.log = log
    this.hooks = hooks
  }

  diskFailed(error: Error): void {
    if (this.reason !== undefined) return
    this.reason = 'the disk failed'
    this.log.error(`the disk failed and the broker stops: ${error.message}`, {
      code: 'DISK_FAILED',
      hint: diskHint(error),
      err: error,
    })
    this.hooks.onFatal(error)
  }

  /** Not the disk's fault, and nothing that another start would mend. */
  mustStop(error: EastGuardError): void {
    if (this.reason !== undefined) return
    this.reason = error.message
    const { code, hint } = error
    this.log.error(`the broker stops: ${error.message}`, { code, hint })
    this.endStart(error)
    this.hooks.onFatal(error)
  }

  refusedAsOld(dataDir: DataDir, by: NodeId): void {
    if (this.reason !== undefined) return
    this.reason = 'the data directory is an older copy'
    const error = refusedAsOld(dataDir.nodeId, by)
    const { code, hint } = error
    this.log.error(`the broker stops: ${error.message}`, { code, hint })
    // Only when the directory says it too.
    const tell = (): void => {
      this.endStart(error)
      this.hooks.onFatal(error)
    }
    dataDir.refuse(by).then(tell, (cause: unknown) => {
      this.log.error('the data directory cannot be told that it was refused', { err: cause })
      tell()
    })
  }

  /** The owner wants the broker no more; of one that has started `stop` does it. */
  stopStart(): void {
    this.endStart(
      new EastGuardError('BROKER_STOPPED', 'the broker was stopped before it had started'),
    )
  }

  private endStart(error: Error): void {
    this.end ??= error
    this.onEnd(this.end)
  }

  /** As `work`, which others may keep waiting, ends; but rejects when the broker should not go on before. */
  async unlessEnded<T>(work: Promise<T>): Promise<T> {
    const ended = new Promise<never>((_resolve, reject) => {
      this.onEnd = reject
      if (this.end !== undefined) reject(this.end)
    })
    try {
      return await Promise.race([work, ended])
    } finally {
      this.onEnd = () => {}
    }
  }
}

// What ends a broker that nobody has asked to stop. Each is told once: to the log, to whoever asks whether the broker is
// ready, and to its owner, who ends the process.
//
//   the disk failed             nothing more is acknowledged; what is there may be started again
//   refused as an older copy    another broker has met a start of this node that this data directory does not know: it was
//                               restored, or copied. That is written into the directory before anybody is told, because a
//                               supervisor starts the broker again, and it must not act under this id then either

import type { EastGuardError } from '../base/errors.ts'
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
  /** Once the directory says it too. */
  private refusal: EastGuardError | undefined
  private onRefusal: (error: EastGuardError) => void = () => {}

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
  mustStop(error: Error): void {
    if (this.reason !== undefined) return
    this.reason = error.message
    this.log.error(`the broker stops: ${error.message}`, { err: error })
    this.hooks.onFatal(error)
  }

  refusedAsOld(dataDir: DataDir, by: NodeId): void {
    if (this.reason !== undefined) return
    this.reason = 'the data directory is an older copy'
    const error = refusedAsOld(dataDir.nodeId, by)
    const { code, hint } = error
    this.log.error(`the broker stops: ${error.message}`, { code, hint })
    const tell = (): void => {
      this.refusal = error
      this.onRefusal(error)
      this.hooks.onFatal(error)
    }
    dataDir.refuse(by).then(tell, (cause: unknown) => {
      this.log.error('the data directory cannot be told that it was refused', { err: cause })
      tell()
    })
  }

  /** As `work` ends; but rejects when the broker is refused before, which a start that waits for others would wait out. */
  async unlessRefused<T>(work: Promise<T>): Promise<T> {
    const refused = new Promise<never>((_resolve, reject) => {
      this.onRefusal = reject
      if (this.refusal !== undefined) reject(this.refusal)
    })
    try {
      return await Promise.race([work, refused])
    } finally {
      this.onRefusal = () => {}
    }
  }
}

// How a range gets its fold when it is not in memory:
//
//   staged state of the open segment  +  every recovered entry of it  =  the fold
//
// Of these entries only those below the high watermark that recovery knows are committed. What lies above waits for the
// outcome of the segment, as before the restart.

import { Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import { RangeState } from '../../core/producers/range-state.ts'
import { DiskError } from '../../ports/disk.ts'
import type { RangeCopy } from './copy.ts'

/** What the disk could not read it may read yet; what it cannot read so often is as good as damaged. */
const LOAD_TRIES = 5

/** Rejects with DAMAGED, after which the range is broken, or with what the disk said, after which it may be tried again. */
export async function load(copy: RangeCopy): Promise<void> {
  const { key } = copy
  try {
    await loadFold(copy)
  } catch (error) {
    const damaged = error instanceof EastGuardError && error.code === 'DAMAGED'
    if (!damaged || copy.fault !== undefined) throw error
    const unreadable = error.cause instanceof DiskError
    if (unreadable && ++copy.loadFailures < LOAD_TRIES) throw error
    // What is damaged is sealed by now, and nobody's open segment.
    if (copy.key !== key) return await load(copy)
    // Whoever waits for the range is told now, not when its patience is over.
    throw copy.break(error.message)
  }
}

async function loadFold(copy: RangeCopy): Promise<void> {
  const { store } = copy.context
  for (;;) {
    const { key } = copy
    const log = store.find(key)
    if (log?.damage !== undefined) throw copy.break(log.damage)
    const state = await stagedState(copy)
    if (log !== undefined) {
      for await (const entries of log.scan(0)) {
        for (const entry of entries) {
          state.append(entry)
          if (entry.entryNumber < log.highWatermark) state.commit(entry.entryNumber + 1)
        }
      }
    }
    if (copy.status === 'gone') throw goneError(copy)
    // Meanwhile the segment may have got a successor.
    if (copy.key !== key) continue
    // A fence may have made one that is empty.
    copy.begin(state, log ?? store.find(key))
    return
  }
}

/** As it is where the open segment begins. Rejects with DAMAGED. */
export async function stagedState(copy: RangeCopy): Promise<RangeState> {
  const { range, context, open, key } = copy
  const { token, firstOffsets } = open
  if (token === '') {
    return new RangeState(range.firstPartition, firstOffsets, context.producerIdExpiryMs)
  }
  const bytes = context.staged.recall(key, token) ?? (await context.store.loadState(key, token))
  if (bytes === undefined) {
    throw new EastGuardError('DAMAGED', 'the range state at its start is not on this disk')
  }
  try {
    return RangeState.decode(bytes, context.producerIdExpiryMs)
  } catch (error) {
    if (!(error instanceof Truncated)) throw error
    const what = `the range state at its start is damaged: ${error.message}`
    throw new EastGuardError('DAMAGED', what)
  }
}

function goneError({ fault }: RangeCopy): EastGuardError {
  return new EastGuardError(fault?.code ?? 'INTERNAL', fault?.message ?? 'the range is closed')
}

// One sync with one broker, as its dialer: connect, ask, take the answer, close. It waits for nobody longer than its time-out.

import type { Clock } from '../../ports/clock.ts'
import type { Address, Connection, Streams } from '../../ports/streams.ts'
import { FRAME } from '../../wire/peer/frame.ts'
import { SyncReader, syncFrame } from './sync-frames.ts'

export interface AskOptions {
  readonly ports: { readonly streams: Streams; readonly clock: Clock }
  readonly to: Address
  readonly request: Uint8Array
  /** For all of it. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** Rejects with an Error that says why there is no answer. */
export async function ask(options: AskOptions): Promise<Uint8Array> {
  const { ports, to, request, timeoutMs, signal } = options
  const until = ports.clock.monotonic() + timeoutMs
  const connection = await ports.streams.connect(to, { timeoutMs, signal })
  return new Promise((resolve, reject) => {
    const reader = new SyncReader(FRAME.SYNC_ANSWER)
    const fail = (why: string): void => {
      end(connection)
      reject(new Error(why))
    }
    const end = (ended: Connection): void => {
      timer.cancel()
      signal.removeEventListener('abort', abort)
      ended.destroy()
    }
    const abort = (): void => fail('the sync was given up')
    const timer = ports.clock.after(until - ports.clock.monotonic(), () =>
      fail(`no answer in ${timeoutMs} ms`),
    )
    connection.handle({
      onData: (chunk) => {
        const found = reader.read(chunk)
        if (found === undefined) return
        if ('fault' in found) return fail(`the answer is no sync: ${found.fault}`)
        end(connection)
        resolve(found.bytes)
      },
      onClose: (error) => fail(error?.message ?? 'the other side closed without an answer'),
    })
    signal.addEventListener('abort', abort)
    if (signal.aborted) return abort()
    connection.write([syncFrame(FRAME.SYNC, request)])
  })
}

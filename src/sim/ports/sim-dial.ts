// How a connection comes to be: a call that is answered, refused, or lost. A lost call is made again after a second, two
// seconds, four, as TCP does, so a host that is cut off or off shows as silence and never as a refusal.

import type { Address, Connection, ConnectOptions } from '../../ports/streams.ts'
import type { SimClock } from './clock.ts'
import type { Gate } from './gate.ts'
import type { Link } from './links.ts'
import type { SimConnection } from './sim-connection.ts'

/** Who listens, and the gate of the process that does. */
export interface Acceptor {
  readonly gate: Gate
  readonly accept: (connection: Connection) => void
}

export interface DialCounts {
  /** Calls of which nothing came back. */
  unansweredDials: number
}

export interface Caller {
  readonly clock: SimClock
  readonly gate: Gate
  readonly counts: DialCounts
  readonly acceptorAt: (to: Address) => Acceptor | undefined
  readonly there: (to: string) => Link
  readonly back: (to: string) => Link
  /** Both ends of a new connection. */
  readonly connect: (
    to: Address,
    far: Acceptor,
  ) => readonly [near: SimConnection, far: SimConnection]
}

const RETRY_MS = 1000

export function dial(caller: Caller, to: Address, options: ConnectOptions): Promise<Connection> {
  const doing = `cannot connect to ${to.host}:${to.port}`
  const { clock, gate } = caller
  const { signal, timeoutMs } = options
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(new Error(`${doing}: aborted`))
    let settled = false
    const settle = (): boolean => {
      if (settled) return false
      settled = true
      timer.cancel()
      signal?.removeEventListener('abort', abort)
      return true
    }
    const fail = (why: string): void => {
      if (settle()) reject(new Error(`${doing}: ${why}`))
    }
    const abort = (): void => fail('aborted')
    const timer = clock.after(timeoutMs, () =>
      gate.pass(() => fail(`no answer within ${timeoutMs} ms`)),
    )
    signal?.addEventListener('abort', abort, { once: true })
    call(caller, to, {
      over: () => settled || gate.closed,
      connected: (near) =>
        gate.pass(() => {
          if (settle()) resolve(near)
          else near.destroy()
        }),
      refused: () =>
        gate.pass(() => fail('connection refused: nothing listens there (ECONNREFUSED)')),
    })
  })
}

interface Call {
  /** Nobody waits for it any more. */
  over(): boolean
  connected(near: SimConnection): void
  refused(): void
}

function call(caller: Caller, to: Address, told: Call, retryMs: number = RETRY_MS): void {
  const { clock, counts } = caller
  const there = caller.there(to.host)
  const back = caller.back(to.host)
  const unanswered = (): void => {
    counts.unansweredDials++
    clock.after(retryMs, () => {
      if (!told.over()) call(caller, to, told, retryMs * 2)
    })
  }
  const left = there.passes
  clock.after(there.delay(0), () => {
    if (!left || !there.passes || !back.passes) return unanswered()
    const acceptor = caller.acceptorAt(to)
    if (acceptor === undefined) return told.refused()
    if (told.over()) return
    const [near, far] = caller.connect(to, acceptor)
    acceptor.gate.pass(() => acceptor.accept(far))
    clock.after(back.delay(0), () => {
      if (back.passes) told.connected(near)
      // The other side believes in a connection of which nobody here knows.
      else near.lose()
    })
  })
}

// Runs this broker's members of many groups: what all of them want of the disk in one turn is one sync, and what they say to
// one peer is one frame.
//
//   mark(replica) ... ──next turn──> take effects ─> frames leave
//                                      └─> records into the journal ──one sync──> frames that waited for it leave
//
// A member whose records are on their way takes part again when they are durable; the others go on meanwhile.

import type { Effects } from '../../core/raft/types.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Message } from '../../model/raft.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Journal } from '../../storage/journal/journal.ts'
import type { PeerMessage } from '../../wire/peer/types.ts'
import type { Replica } from './replica.ts'

export interface TurnsHost {
  readonly clock: Clock
  readonly journal: Journal
  send(to: NodeId, messages: readonly PeerMessage[]): void
  /** What a member has come to; may be acted on before it is durable here. Throws what makes the broker stop. */
  took(replica: Replica, effects: Effects): void
  /** The disk failed, or what was read cannot be understood: the broker must stop. */
  failed(error: Error): void
}

export class Turns {
  private readonly host: TurnsHost
  private readonly marked = new Set<Replica>()
  private readonly outgoing = new Map<NodeId, PeerMessage[]>()
  private scheduled = false
  private stopped = false

  constructor(host: TurnsHost) {
    this.host = host
  }

  /** Something has happened to it. */
  mark(replica: Replica): void {
    this.marked.add(replica)
    this.schedule()
  }

  /** Leaves with the others of this turn. */
  send(to: NodeId, message: PeerMessage): void {
    const list = this.outgoing.get(to)
    if (list === undefined) this.outgoing.set(to, [message])
    else list.push(message)
    this.schedule()
  }

  /** Nothing is taken or sent any more. */
  stop(): void {
    this.stopped = true
  }

  private schedule(): void {
    if (this.scheduled) return
    this.scheduled = true
    this.host.clock.nextTurn(() => this.run())
  }

  private run(): void {
    this.scheduled = false
    if (this.stopped) return
    try {
      const synced = this.takeAll()
      if (synced.length > 0) this.whenDurable(this.host.journal.sync(), synced)
    } catch (error) {
      this.stop()
      this.host.failed(error as Error)
      return
    }
    this.flush()
  }

  private takeAll(): readonly (readonly [Replica, Effects])[] {
    const synced: [Replica, Effects][] = []
    for (const replica of this.marked) {
      if (replica.busy) continue
      this.marked.delete(replica)
      // After an answer that changes nothing, say: most of what idle shards hear.
      if (!replica.raft.hasWork) continue
      const effects = replica.raft.take()
      this.say(replica, effects.messages)
      this.host.took(replica, effects)
      const written = replica.write(effects)
      if (written === false) {
        this.say(replica, effects.messagesAfterSync)
        continue
      }
      replica.busy = true
      if (written === true) synced.push([replica, effects])
      else this.whenDurable(written, [[replica, effects]])
    }
    return synced
  }

  private whenDurable(
    durable: Promise<void>,
    taken: readonly (readonly [Replica, Effects])[],
  ): void {
    durable.then(
      () => {
        for (const [replica, effects] of taken) {
          replica.busy = false
          replica.raft.persisted(effects.mark)
          this.say(replica, effects.messagesAfterSync)
          this.marked.add(replica)
        }
        this.run()
      },
      (error: unknown) => {
        this.stop()
        this.host.failed(error as Error)
      },
    )
  }

  private say({ shard }: Replica, messages: readonly Message[]): void {
    for (const message of messages) this.send(message.to, { kind: 'raft', shard, message })
  }

  private flush(): void {
    for (const [to, messages] of this.outgoing) this.host.send(to, messages)
    this.outgoing.clear()
  }
}

// A connection on which both sides have proved that they have the cluster key, and on which nobody else can read, change,
// repeat or leave out anything.
//
//   dialer                                   acceptor
//     │ ── key hello: which key, chance ──────> │    in the clear, wire/peer/key-hello.ts
//     │ <───────────── key welcome: chance ──── │    or a refusal with its reason, and the end
//     │ <───────────────────── record 0 ─────── │    empty: it opens, so the acceptor has the key
//     │ ── record 0 ──────────────────────────> │    with what was waiting: it opens, so the dialer has the key
//     │ <────────────────── records 1, ... ───> │
//
//   record   u32 length │ up to 64 KiB, encrypted │ 16B tag
//
// Each direction has a key of its own, derived from the cluster key and everything that both have said in the clear. Chance
// from both sides is in it, so what was caught on another connection does not open on this one, and what goes one way does
// not open the other way. A record's number is not sent: it is the count of those before it, so one that is missing, doubled
// or out of place does not open. What does not open ends the connection.
//
// Only the end is not proved: who can cut the wire can also make it look like an orderly end. Frames inside have lengths, and
// none of the protocols above takes an end for an answer.
//
// It may be written to at once; what is written waits for the other side's proof. Nothing here waits for a time: whoever
// connects or listens gives up by a clock of its own.

import { concatBytes, putU32 } from '../../base/bytes.ts'
import { Truncated } from '../../base/cursor.ts'
import { EastGuardError } from '../../base/errors.ts'
import type { Address, Connection, ConnectionHandlers } from '../../ports/streams.ts'
import { FrameReader } from '../../wire/native/frame-reader.ts'
import { FRAME, openFrame } from '../../wire/peer/frame.ts'
import {
  type HelloRefusal,
  PEER_HELLO_BYTES_MAX,
  readRefusal,
  refusalFrame,
} from '../../wire/peer/hello.ts'
import {
  KEY_CHANCE_BYTES,
  keyHelloFrame,
  keyWelcomeFrame,
  readKeyHello,
  readKeyWelcome,
} from '../../wire/peer/key-hello.ts'
import type { ClusterKey, ClusterKeys } from './cluster-keys.ts'
import { KEY_NEEDED, type KeyRefusals, OTHER_KEY } from './refusals.ts'

export const RECORD_BYTES_MAX: number = 64 * 1024
const LENGTH_BYTES = 4
const TAG_BYTES = 16

export type Role = 'dialer' | 'acceptor'
const LABELS: Readonly<Record<Role, string>> = {
  dialer: 'eastguard connection 1, of the dialer',
  acceptor: 'eastguard connection 1, of the acceptor',
}

/** One direction. */
interface Way {
  readonly key: Uint8Array
  /** Records that went this way. */
  count: number
}

export class SealedConnection implements Connection {
  private readonly connection: Connection
  private readonly role: Role
  private readonly keys: ClusterKeys
  private readonly refusals: KeyRefusals
  private readonly reader = new FrameReader(PEER_HELLO_BYTES_MAX)
  private readonly chance: Uint8Array
  /** `proving`: the keys are there, and nothing has come that was sealed with them. */
  private state: 'greeting' | 'proving' | 'open' | 'closed' = 'greeting'
  private out: Way | undefined
  private in: Way | undefined
  private handlers: ConnectionHandlers | undefined
  private waiting: Uint8Array[] = []
  private waitingBytes = 0
  private ending = false
  private fault: Error | undefined
  /** It has closed before anybody listened. */
  private unheard: { readonly error: Error | undefined } | undefined

  constructor(connection: Connection, role: Role, keys: ClusterKeys, refusals: KeyRefusals) {
    this.connection = connection
    this.role = role
    this.keys = keys
    this.refusals = refusals
    this.chance = keys.random.bytes(KEY_CHANCE_BYTES)
    connection.handle({
      onData: (chunk) => this.onData(chunk),
      onDrain: () => this.handlers?.onDrain?.(),
      onClose: (error) => this.onClose(error),
    })
    if (role === 'dialer') {
      connection.write([keyHelloFrame({ name: keys.first.name, chance: this.chance })])
    }
  }

  // What comes.

  private onData(chunk: Uint8Array): void {
    if (this.state === 'closed') return
    // All that the chunk holds is opened before any of it is passed on, so that what a receiver throws is its own.
    const opened: Uint8Array[] = []
    let fault: string | undefined
    try {
      this.reader.push(chunk, (frame) => this.onFrame(frame, opened))
    } catch (error) {
      if (!(error instanceof Truncated || error instanceof EastGuardError)) throw error
      fault = error.message
    }
    for (const plain of opened) {
      if (!this.isClosed) this.handlers?.onData(plain)
    }
    if (fault !== undefined && !this.isClosed) this.onFault(fault)
  }

  private get isClosed(): boolean {
    return this.state === 'closed'
  }

  /** False: nothing is read any more. */
  private onFrame(frame: Uint8Array, opened: Uint8Array[]): boolean {
    if (this.state !== 'greeting') {
      const plain = this.unsealed(frame)
      if (this.state === 'proving') this.proved()
      if (plain.length > 0) opened.push(plain)
    } else if (this.role === 'dialer') this.onAnswer(frame)
    else this.onGreeting(frame)
    return !this.isClosed
  }

  private onGreeting(frame: Uint8Array): void {
    const { kind, body } = openFrame(frame)
    if (kind !== FRAME.KEY_HELLO) return this.refuse(KEY_NEEDED)
    const hello = readKeyHello(body)
    const key = this.keys.named(hello.name)
    if (key === undefined) return this.refuse(OTHER_KEY)
    this.agree(key, hello.chance, this.chance)
    this.connection.write([keyWelcomeFrame(this.chance), ...this.sealed([])])
  }

  private onAnswer(frame: Uint8Array): void {
    const { kind, body } = openFrame(frame)
    if (kind === FRAME.KEY_WELCOME) {
      this.agree(this.keys.first, this.chance, readKeyWelcome(body))
    } else if (kind === FRAME.REFUSAL) {
      const { reason, text } = readRefusal(body)
      this.fail(`it refuses: ${text} (${reason})`)
    } else throw new Truncated(`a frame of kind ${kind} came instead of a key welcome`)
  }

  private agree(key: ClusterKey, dialer: Uint8Array, acceptor: Uint8Array): void {
    const salt = concatBytes([key.name, dialer, acceptor])
    const way = (role: Role): Way => ({
      key: this.keys.secrets.derive(key.secret, salt, LABELS[role]),
      count: 0,
    })
    this.out = way(this.role)
    this.in = way(this.role === 'dialer' ? 'acceptor' : 'dialer')
    this.reader.frameBytesMax = RECORD_BYTES_MAX + TAG_BYTES
    this.state = 'proving'
  }

  private unsealed(record: Uint8Array): Uint8Array {
    const way = this.in
    const plain = way && this.keys.secrets.open(way.key, way.count, record)
    if (way === undefined || plain === undefined) throw new Truncated('a record does not open')
    way.count++
    return plain
  }

  private proved(): void {
    this.state = 'open'
    const { waiting } = this
    this.waiting = []
    this.waitingBytes = 0
    // It is the dialer's proof, whatever it has to say.
    if (this.role === 'dialer' || waiting.length > 0) this.connection.write(this.sealed(waiting))
    if (this.ending) this.connection.end()
  }

  // The ends.

  private refuse(refusal: HelloRefusal): void {
    this.refusals.tell(this.connection.remote, refusal)
    this.state = 'closed'
    this.fault = new Error(refusal.text)
    this.connection.write([refusalFrame(refusal)])
    this.connection.end()
  }

  private onFault(fault: string): void {
    const proved = this.state === 'open'
    if (!proved && this.role === 'acceptor') {
      this.refusals.tellUnproved(this.connection.remote, fault)
    }
    this.fail(
      proved
        ? `bytes came that no broker writes: ${fault}`
        : `it does not prove that it has the cluster key: ${fault}`,
    )
  }

  private fail(why: string): void {
    this.fault = new Error(why)
    this.destroy()
  }

  private onClose(error: Error | undefined): void {
    const early = this.state === 'greeting' || this.state === 'proving'
    this.state = 'closed'
    this.waiting = []
    this.waitingBytes = 0
    const cut = early ? new Error('it closed before it had proved the cluster key') : undefined
    const why = this.fault ?? error ?? cut
    if (this.handlers === undefined) this.unheard = { error: why }
    else this.handlers.onClose(why)
  }

  // What its user does.

  get remote(): Address {
    return this.connection.remote
  }

  get highWaterBytes(): number {
    return this.connection.highWaterBytes
  }
  set highWaterBytes(bytes: number) {
    this.connection.highWaterBytes = bytes
  }

  get queuedBytes(): number {
    return this.waitingBytes + this.connection.queuedBytes
  }

  handle(handlers: ConnectionHandlers): void {
    this.handlers = handlers
    const { unheard } = this
    if (unheard !== undefined) void Promise.resolve().then(() => handlers.onClose(unheard.error))
  }

  write(buffers: readonly Uint8Array[]): boolean {
    if (this.state === 'open') return this.connection.write(this.sealed(buffers))
    if (this.state === 'closed') return false
    for (const buffer of buffers) {
      this.waiting.push(buffer)
      this.waitingBytes += buffer.length
    }
    return true
  }

  pause(): void {
    this.connection.pause()
  }

  resume(): void {
    this.connection.resume()
  }

  end(): void {
    this.ending = true
    if (this.state === 'open' || this.waiting.length === 0) this.connection.end()
  }

  destroy(): void {
    this.state = 'closed'
    this.connection.destroy()
  }

  // Records.

  /** As records, each as full as can be; at least one, which may be empty. */
  private sealed(buffers: readonly Uint8Array[]): readonly Uint8Array[] {
    const records: Uint8Array[] = []
    let parts: Uint8Array[] = []
    let bytes = 0
    for (const buffer of buffers) {
      for (let at = 0; at < buffer.length; ) {
        const part = buffer.subarray(at, at + RECORD_BYTES_MAX - bytes)
        parts.push(part)
        bytes += part.length
        at += part.length
        if (bytes < RECORD_BYTES_MAX) continue
        this.addRecord(records, parts, bytes)
        parts = []
        bytes = 0
      }
    }
    if (bytes > 0 || records.length === 0) this.addRecord(records, parts, bytes)
    return records
  }

  private addRecord(records: Uint8Array[], parts: readonly Uint8Array[], bytes: number): void {
    const way = this.out
    if (way === undefined) return
    const length = new Uint8Array(LENGTH_BYTES)
    putU32(length, 0, bytes + TAG_BYTES)
    records.push(length, ...this.keys.secrets.seal(way.key, way.count++, parts))
  }
}

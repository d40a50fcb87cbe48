import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prng } from '../../src/base/prng.ts'
import type { Address, Connection, Listener, Streams } from '../../src/ports/streams.ts'

interface StreamsHarness {
  readonly streams: Streams
  /** Somewhere that nothing listens. */
  readonly nobody: Address
  readonly anyPort: Address
}

export type WithStreams = (body: (harness: StreamsHarness) => Promise<void>) => Promise<void>

export function streamsSuite(name: string, withStreams: WithStreams): void {
  const check = (what: string, body: (harness: StreamsHarness) => Promise<void>): void => {
    test(`${name} streams: ${what}`, () => withStreams(body))
  }

  check('bytes arrive in order and whole, both ways at once', async (harness) => {
    const { near, far, listener } = await pair(harness)
    const sent = prng(3).bytes(3_000_000)
    for (const end of [near, far]) {
      let at = 0
      for (let i = 0; at < sent.length; i++) {
        const next = Math.min(sent.length, at + ((i * 7919) % 20_000) + 1)
        const middle = (at + next) >> 1
        end.connection.write([sent.subarray(at, middle), sent.subarray(middle, next)])
        at = next
      }
    }
    await Promise.all([near.received(sent.length), far.received(sent.length)])
    assert.ok(Buffer.from(sent).equals(near.bytes()))
    assert.ok(Buffer.from(sent).equals(far.bytes()))
    assert.equal(near.connection.queuedBytes, 0)
    await endBoth(near, far, listener)
  })

  check(
    'a chunk is lent: its receiver may change it, and the next one writes over it',
    async (harness) => {
      const { near, far, listener } = await pair(harness)
      const sent = new Uint8Array(1000).fill(9)
      const kept: Uint8Array[] = []
      far.onData = (chunk) => {
        chunk.fill(0)
        kept.push(chunk)
      }
      near.connection.write([sent])
      await far.received(1000)
      near.connection.write([sent])
      await far.received(2000)
      assert.ok(sent.every((byte) => byte === 9))
      assert.ok(far.bytes().every((byte) => byte === 9))
      assert.notEqual(kept[0]?.[0], 9, 'what is kept of a chunk is lost')
      await endBoth(near, far, listener)
    },
  )

  check('a receiver that pauses stops its sender, and resuming drains', async (harness) => {
    const { near, far, listener } = await pair(harness)
    far.connection.pause()
    const block = new Uint8Array(256 * 1024).fill(1)
    let sent = 0
    while (near.connection.write([block])) {
      sent += block.length
      await near.turn()
      assert.ok(sent < 256 * 1024 * 1024, 'a paused receiver must stop its sender')
    }
    sent += block.length
    assert.ok(near.connection.queuedBytes > 0)
    assert.equal(near.drains, 0)
    far.connection.resume()
    await near.drained()
    await far.received(sent)
    await endBoth(near, far, listener)
  })

  check('end sends what is queued and closes both sides without an error', async (harness) => {
    const { near, far, listener } = await pair(harness)
    near.connection.write([new Uint8Array(500_000).fill(5)])
    near.connection.end()
    assert.equal(near.connection.write([new Uint8Array(1)]), false)
    await Promise.all([near.closed(), far.closed()])
    assert.equal(far.byteCount, 500_000)
    assert.deepEqual([near.closes, far.closes], [[undefined], [undefined]])
    await listener.close()
  })

  check('what is queued when the other side ends still arrives', async (harness) => {
    const { near, far, listener } = await pair(harness)
    far.onData = () => {
      far.onData = undefined
      far.connection.write([new Uint8Array(300_000)])
    }
    near.connection.write([new Uint8Array(1)])
    near.connection.end()
    await Promise.all([near.closed(), far.closed()])
    assert.equal(near.byteCount, 300_000)
    await listener.close()
  })

  check('destroy drops what is queued; each side closes once', async (harness) => {
    const { near, far, listener } = await pair(harness)
    far.connection.pause()
    near.connection.write([new Uint8Array(50_000_000)])
    near.connection.destroy()
    near.connection.destroy()
    near.connection.end()
    assert.equal(near.connection.write([new Uint8Array(1)]), false)
    assert.equal(near.closes.length, 0, 'onClose comes later, never within destroy')
    far.connection.resume()
    await Promise.all([near.closed(), far.closed()])
    await near.turn()
    assert.deepEqual(near.closes, [undefined])
    assert.equal(far.closes.length, 1)
    assert.ok(far.byteCount < 50_000_000)
    await listener.close()
  })

  check('nothing is received after destroy', async (harness) => {
    const { near, far, listener } = await pair(harness)
    far.onData = () => far.connection.destroy()
    for (let i = 0; i < 20; i++) near.connection.write([new Uint8Array(100_000)])
    await Promise.all([near.closed(), far.closed()])
    assert.equal(far.chunks.length, 1)
    await listener.close()
  })

  check('connecting to nobody names the address and the cause', async ({ streams, nobody }) => {
    await assert.rejects(streams.connect(nobody, { timeoutMs: 5000 }), (error: Error) => {
      assert.match(error.message, new RegExp(`${nobody.host}:${nobody.port}.*refused`))
      return true
    })
  })

  check('connecting can be aborted, before and during', async ({ streams, nobody, anyPort }) => {
    const controller = new AbortController()
    const listener = await streams.listen(anyPort, (connection) => quiet(connection))
    const options = { timeoutMs: 5000, signal: controller.signal }
    const connecting = streams.connect(listener.address, options)
    controller.abort()
    await assert.rejects(connecting, /aborted/)
    await assert.rejects(streams.connect(nobody, options), /aborted/)
    await listener.close()
  })

  check('a port is taken once, and free again when its listener closed', async (harness) => {
    const { streams, anyPort } = harness
    const first = await streams.listen(anyPort, quiet)
    assert.ok(first.address.port > 0)
    await assert.rejects(streams.listen(first.address, quiet), (error: Error) => {
      assert.match(error.message, new RegExp(`${first.address.port}.*in use`))
      return true
    })
    await first.close()
    await (await streams.listen(first.address, quiet)).close()
  })

  check('closing a listener leaves its connections open', async (harness) => {
    const { near, far, listener } = await pair(harness)
    await listener.close()
    near.connection.write([new Uint8Array(10)])
    await far.received(10)
    await assert.rejects(harness.streams.connect(listener.address, { timeoutMs: 1000 }))
    await endBoth(near, far, listener)
  })
}

function quiet(connection: Connection): void {
  connection.handle({ onData: () => undefined, onClose: () => undefined })
}

/** One side of a connection, with a record of what happened to it. */
class Side {
  readonly connection: Connection
  readonly chunks: Uint8Array[] = []
  byteCount = 0
  drains = 0
  readonly closes: (Error | undefined)[] = []
  onData: ((chunk: Uint8Array) => void) | undefined
  private waiting: { readonly done: () => boolean; readonly tell: () => void }[] = []

  constructor(connection: Connection) {
    this.connection = connection
    connection.handle({
      onData: (chunk) => {
        this.chunks.push(chunk.slice())
        this.byteCount += chunk.length
        this.onData?.(chunk)
        this.look()
      },
      onDrain: () => {
        this.drains++
        this.look()
      },
      onClose: (error) => {
        this.closes.push(error)
        this.look()
      },
    })
  }

  bytes(): Buffer {
    return Buffer.concat(this.chunks)
  }

  received(count: number): Promise<void> {
    return this.until(() => this.byteCount >= count)
  }

  drained(): Promise<void> {
    return this.until(() => this.drains > 0)
  }

  closed(): Promise<void> {
    return this.until(() => this.closes.length > 0)
  }

  turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve))
  }

  private until(done: () => boolean): Promise<void> {
    return new Promise((tell) => {
      this.waiting.push({ done, tell })
      this.look()
    })
  }

  private look(): void {
    this.waiting = this.waiting.filter(({ done, tell }) => {
      if (!done()) return true
      tell()
      return false
    })
  }
}

async function pair({ streams, anyPort }: StreamsHarness): Promise<{
  near: Side
  far: Side
  listener: Listener
}> {
  let accepted: (side: Side) => void
  const far = new Promise<Side>((resolve) => {
    accepted = resolve
  })
  const listener = await streams.listen(anyPort, (connection) => accepted(new Side(connection)))
  const near = new Side(await streams.connect(listener.address, { timeoutMs: 5000 }))
  return { near, far: await far, listener }
}

async function endBoth(near: Side, far: Side, listener: Listener): Promise<void> {
  near.connection.end()
  await Promise.all([near.closed(), far.closed()])
  await listener.close()
}

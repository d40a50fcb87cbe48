// A client on one of the hosts, a process of its own there: it is cut off with its host. It writes when it is told to, to the second
// partition of a topic, and says what came of it.
//
//   parent ── { topic, value, patient } ──>   <── { value, ms, offset | code, message, maybeStored } ──

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { EastGuard, EastGuardError, type Producer } from '../../../src/index.ts'
import type { Host } from './hosts.ts'

const PARTITION = 1

/** When who is cut off must have been told so: a lease, the patience of who leads without one, and what timers may be late. */
const TOLD_MS = 5000
/** For when it should work: longer than all that a cluster does by itself. */
const PATIENT_MS = 60_000

interface Asked {
  readonly topic: string
  readonly value: string
  readonly patient: boolean
}

export interface Told {
  readonly value: string
  readonly ms: number
  readonly offset?: number
  readonly code?: string
  readonly message?: string
}

export class Islander {
  private readonly child: ChildProcess
  private readonly waiting = new Map<string, (told: Told) => void>()

  constructor(host: Host, seeds: readonly string[]) {
    const [command, ...words] = [...host.enter, process.execPath]
    const program = fileURLToPath(new URL('./islander.js', import.meta.url))
    this.child = spawn(command, [...words, program, ...seeds], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.child.on('message', (told: Told) => {
      this.waiting.get(told.value)?.(told)
      this.waiting.delete(told.value)
    })
  }

  write(asked: Asked): Promise<Told> {
    return new Promise((resolve) => {
      this.waiting.set(asked.value, resolve)
      this.child.send(asked)
    })
  }

  close(): void {
    this.child.kill('SIGKILL')
  }
}

/** Producers are kept: each has an id, which nobody who is cut off can be given. */
class Writer {
  private readonly impatient: Producer
  private readonly patient: Producer

  constructor(seeds: readonly string[]) {
    const client = new EastGuard({ seeds })
    this.impatient = client.producer({ acks: 'all', deliveryTimeoutMs: TOLD_MS })
    this.patient = client.producer({ acks: 'all', deliveryTimeoutMs: PATIENT_MS })
  }

  async write({ topic, value, patient }: Asked): Promise<Told> {
    const producer = patient ? this.patient : this.impatient
    const beganMs = performance.now()
    const ms = (): number => Math.round(performance.now() - beganMs)
    try {
      const { offset } = await producer.send({ topic, value, partition: PARTITION })
      return { value, ms: ms(), offset }
    } catch (error) {
      const code = error instanceof EastGuardError ? error.code : 'not ours'
      return { value, ms: ms(), code, message: String(error) }
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const writer = new Writer(process.argv.slice(2))
  process.on('message', (asked: Asked) => {
    void writer.write(asked).then((told) => process.send?.(told))
  })
  process.once('disconnect', () => process.exit(0))
}

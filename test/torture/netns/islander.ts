// A client on one of the hosts, a process of its own there: it is cut off with its host. It writes when it is told to, to the second
// partition of a topic, and says what came of it.
//
//   parent ── { topic, value, timeoutMs } ──>   <── { value, ms, offset | code, message, maybeStored } ──

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { EastGuard, EastGuardError } from '../../../src/index.ts'
import type { Host } from './hosts.ts'

const PARTITION = 1

interface Asked {
  readonly topic: string
  readonly value: string
  readonly timeoutMs: number
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

async function write(client: EastGuard, asked: Asked): Promise<Told> {
  const { topic, value, timeoutMs } = asked
  const beganMs = performance.now()
  const ms = (): number => Math.round(performance.now() - beganMs)
  const producer = client.producer({ acks: 'all', deliveryTimeoutMs: timeoutMs })
  try {
    const { offset } = await producer.send({ topic, value, partition: PARTITION })
    return { value, ms: ms(), offset }
  } catch (error) {
    const code = error instanceof EastGuardError ? error.code : 'not ours'
    return { value, ms: ms(), code, message: String(error) }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const client = new EastGuard({ seeds: process.argv.slice(2) })
  process.on('message', (asked: Asked) => {
    void write(client, asked).then((told) => process.send?.(told))
  })
  process.once('disconnect', () => process.exit(0))
}

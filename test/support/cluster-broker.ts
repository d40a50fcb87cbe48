// A broker of a cluster, in a process of its own: started again and again on one data directory and the same ports, killed,
// paused, and asked how it stands in each shard.

import { fileURLToPath } from 'node:url'
import type { Neighbour } from '../../src/broker/options.ts'
import type { ShardView } from '../../src/broker/shards/types.ts'
import type { ClusterId, NodeId } from '../../src/model/ids.ts'
import type { Refusal } from '../../src/model/raft.ts'
import type { Address } from '../../src/ports/streams.ts'
import { type BrokerProcess, freePort, spawnBroker } from './broker-process.ts'
import type { ClusterCommand, ClusterReport, MembershipStep } from './cluster-commands.ts'

const PROGRAM = fileURLToPath(new URL('./cluster-broker-main.js', import.meta.url))
/** A broker that does not answer within this has no part in what is asked: it may be paused, or dead. */
const ANSWER_MS = 2000

type Answer = Exclude<ClusterReport, { readonly kind: 'member' }>

export interface ClusterBrokerOptions {
  readonly dataDir: string
  readonly flags: readonly string[]
  readonly nodeFlags: readonly string[]
}

export class ClusterBroker {
  readonly options: ClusterBrokerOptions
  readonly address: Address
  /** Known from its first start on. */
  neighbour: Neighbour | undefined
  process: BrokerProcess | undefined
  paused = false
  private readonly httpPort: number
  private readonly waiting = new Map<number, (answer: Answer | undefined) => void>()
  private asked = 0

  static async make(options: ClusterBrokerOptions): Promise<ClusterBroker> {
    return new ClusterBroker(options, await freePort(), await freePort())
  }

  private constructor(options: ClusterBrokerOptions, port: number, httpPort: number) {
    this.options = options
    this.address = { host: '127.0.0.1', port }
    this.httpPort = httpPort
  }

  get nodeId(): NodeId {
    if (this.neighbour === undefined) throw new Error('the broker has not been started')
    return this.neighbour.nodeId
  }

  get running(): boolean {
    return this.process !== undefined && !this.paused
  }

  /** Resolves when it takes part in the metadata, before it is ready. */
  async start(neighbours: readonly Neighbour[], joins?: ClusterId): Promise<void> {
    const { dataDir, flags, nodeFlags } = this.options
    const start = {
      port: this.neighbour?.cluster.port ?? 0,
      ...(joins !== undefined && { joins }),
      neighbours,
    }
    const process = await spawnBroker(
      { dataDir, flags, nodeFlags, program: { path: PROGRAM, words: [JSON.stringify(start)] } },
      { port: this.address.port, httpPort: this.httpPort },
    )
    this.process = process
    await new Promise<void>((resolve, reject) => {
      process.child.on('message', (report: ClusterReport) => {
        if (report.kind !== 'member') this.answered(report)
        else {
          const { nodeId, cluster } = report
          const about = { displayName: '', hostLabel: nodeId, state: 'alive' } as const
          this.neighbour = { nodeId, ...about, cluster, client: this.address }
          resolve()
        }
      })
      void process.exited.then((how) =>
        reject(new Error(`it ended with ${how}:\n${process.log()}`)),
      )
    })
  }

  private answered(answer: Answer): void {
    const settle = this.waiting.get(answer.id)
    this.waiting.delete(answer.id)
    settle?.(answer)
  }

  tell(neighbours: readonly Neighbour[]): void {
    this.command({ kind: 'neighbours', neighbours })
  }

  /** By shard; undefined: it does not answer. */
  async look(): Promise<readonly (ShardView | null)[] | undefined> {
    const answer = await this.ask((id) => ({ kind: 'look', id }))
    return answer?.kind === 'views' ? answer.views : undefined
  }

  /** By step: why it was not begun. */
  async take(steps: readonly MembershipStep[]): Promise<readonly (Refusal | null)[] | undefined> {
    const answer = await this.ask((id) => ({ kind: 'steps', id, steps }))
    return answer?.kind === 'begun' ? answer.refusals : undefined
  }

  private ask(command: (id: number) => ClusterCommand): Promise<Answer | undefined> {
    if (!this.running) return Promise.resolve(undefined)
    const id = ++this.asked
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.waiting.delete(id)
        resolve(undefined)
      }, ANSWER_MS)
      this.waiting.set(id, (answer) => {
        clearTimeout(timer)
        resolve(answer)
      })
      this.command(command(id))
    })
  }

  private command(command: ClusterCommand): void {
    const child = this.process?.child
    // Its end is told elsewhere.
    if (child?.connected === true) child.send(command, () => {})
  }

  async ready(withinMs: number = 60_000): Promise<void> {
    if (this.process === undefined) throw new Error('the broker does not run')
    await this.process.ready(withinMs)
  }

  /** SIGSTOP, until `resume`. */
  pause(): void {
    this.paused = true
    this.process?.child.kill('SIGSTOP')
  }

  resume(): void {
    this.process?.child.kill('SIGCONT')
    this.paused = false
  }

  /** Fails when it has ended before, by itself. */
  async kill(): Promise<void> {
    const { process } = this
    if (process === undefined) return
    if (process.child.exitCode !== null) {
      throw new Error(`a broker ended by itself with ${process.child.exitCode}:\n${process.log()}`)
    }
    await this.end('SIGKILL')
  }

  /** By SIGTERM or SIGKILL, whatever state it is in. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { process } = this
    if (process === undefined) return
    if (this.paused) this.resume()
    process.child.kill(signal)
    const late = setTimeout(() => process.child.kill('SIGKILL'), END_MS)
    await process.exited
    clearTimeout(late)
    this.process = undefined
  }
}

const END_MS = 15_000

// Whoever runs the cluster: asks by the SDK, as eg-cli does, for brokers to be drained and removed, again and again until that
// is done, and looks now and then at how the brokers are described. Node numbers are judged here: a node has one for ever, and
// nobody else gets it.

import { EastGuardError } from '../../base/errors.ts'
import { EastGuardClient } from '../../client/client.ts'
import { Cluster } from '../../client/cluster.ts'
import { pause } from '../../client/timing.ts'
import type { NodeId } from '../../model/ids.ts'
import type { BrokerView, NodeRole } from '../../model/metadata.ts'
import { describeCluster } from '../../wire/native/describe-cluster.ts'
import { CLIENT_PORT } from '../cluster/machines.ts'
import { brokerHost } from '../cluster/step.ts'
import type { Watcher } from '../machine.ts'
import type { ProcessPorts } from '../process.ts'

const TIMEOUT_MS = 3000
const LOOK_EVERY_MS = 3000

export interface OperatorOptions {
  readonly ports: ProcessPorts
  readonly brokers: number
  readonly watcher: Watcher
}

export interface Described {
  readonly shards: number
  readonly shardsLed: number
  readonly brokers: readonly BrokerView[]
}

export class Operator {
  /** What has been done. */
  readonly roles: Map<NodeId, NodeRole> = new Map()
  /** Wishes that are not fulfilled. */
  pending = 0
  private readonly options: OperatorOptions
  private readonly client: EastGuardClient
  private readonly direct: Cluster
  private readonly numbers = new Map<NodeId, number>()
  private readonly owners = new Map<number, NodeId>()
  private looks = 0
  private last: Promise<void> = Promise.resolve()

  constructor(options: OperatorOptions) {
    const { ports, brokers } = options
    this.options = options
    const hosts = Array.from({ length: brokers }, (_, i) => brokerHost(i))
    const settings = {
      clientName: 'operator',
      connectTimeoutMs: 300,
      requestTimeoutMs: TIMEOUT_MS,
      backoffMs: 20,
      backoffMaxMs: 200,
    }
    this.client = new EastGuardClient(
      { ...settings, seeds: hosts.map((host) => `${host}:${CLIENT_PORT}`) },
      ports,
    )
    const seeds = hosts.map((host) => ({ host, port: CLIENT_PORT }))
    this.direct = new Cluster(ports, { ...settings, seeds })
  }

  /** Now and then, at one broker after another. */
  start(): void {
    this.options.ports.clock.after(LOOK_EVERY_MS, () => {
      void this.describe(this.looks++ % this.options.brokers)
      this.start()
    })
  }

  /** One wish after another, in their order. Resolves when it is done, or there is no such broker any more. */
  setRole(node: NodeId, role: NodeRole): Promise<void> {
    this.pending++
    this.last = this.last.then(() => this.insist(node, role))
    return this.last
  }

  private async insist(node: NodeId, role: NodeRole): Promise<void> {
    const { ports, watcher } = this.options
    for (;;) {
      try {
        await this.client.admin().setBrokerRole(node, role, { timeoutMs: TIMEOUT_MS })
        this.roles.set(node, role)
        watcher.say(`operator: ${node} is ${role}`)
        break
      } catch (error) {
        if (!(error instanceof EastGuardError)) throw error
        watcher.say(`operator: ${node} is not made ${role}: ${error.code}`)
        if (error.code === 'UNKNOWN_BROKER' || error.code === 'METADATA_CONFLICT') break
      }
      await pause(ports.clock, 500)
    }
    this.pending--
  }

  /** What was refused for want of an answer may be done late, when more has been asked for since. */
  private repeat({ nodeId, role }: BrokerView): void {
    const wanted = this.roles.get(nodeId)
    if (this.pending > 0 || wanted === undefined || wanted === role) return
    void this.setRole(nodeId, wanted)
  }

  /** By that very broker; undefined: it does not say. */
  async describe(broker: number): Promise<Described | undefined> {
    const address = { host: brokerHost(broker), port: CLIENT_PORT }
    try {
      const described = await this.direct.at(address).request(describeCluster, {}, TIMEOUT_MS)
      for (const one of described.brokers) {
        this.judgeNumber(one)
        this.repeat(one)
      }
      return described
    } catch (error) {
      if (!(error instanceof EastGuardError)) throw error
      return undefined
    }
  }

  private judgeNumber({ nodeId, nodeNumber }: BrokerView): void {
    // It has none yet.
    if (nodeNumber === 0) return
    const before = this.numbers.get(nodeId) ?? nodeNumber
    const owner = this.owners.get(nodeNumber) ?? nodeId
    this.numbers.set(nodeId, nodeNumber)
    this.owners.set(nodeNumber, nodeId)
    if (before === nodeNumber && owner === nodeId) return
    const whose = owner === nodeId ? `it was ${before} before` : `${owner} has it`
    this.options.watcher.violation(`node ${nodeId} has the number ${nodeNumber}, and ${whose}`)
  }
}

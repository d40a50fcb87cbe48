// What a broker does for successors: as a holder it makes range state and tail and sees that all have stored them; as a member
// it stores what it is sent. What it staged under other tokens stays until the log shows which one committed.

import type { StageOutcome } from '../../../../src/core/segment/types.ts'
import type { NodeId } from '../../../../src/model/ids.ts'
import type { Staged } from './disk.ts'
import type { Opened } from './following.ts'
import type { Process } from './process.ts'

const SEND_AGAIN_MS = 100
const GIVE_UP_MS = 2000

export interface Order {
  /** The one that ends. */
  readonly segment: number
  readonly token: string
  readonly end: number
  readonly tailFrom: number
  readonly replicas: readonly NodeId[]
}

interface Job {
  readonly order: Order
  readonly staged: Omit<Staged, 'boot'>
  readonly missing: Set<NodeId>
  readonly sinceMs: number
  sentMs: number
  outcome: StageOutcome | undefined
  report: (outcome: StageOutcome) => void
}

export class StagingDesk {
  private readonly process: Process
  private readonly jobs = new Map<string, Job>()

  constructor(process: Process) {
    this.process = process
  }

  // ---- the holder

  /** Ordered again, it reports again once there is an outcome. */
  order(order: Order, report: (outcome: StageOutcome) => void): void {
    const { process, jobs } = this
    const known = jobs.get(order.token)
    if (known !== undefined) {
      known.report = report
      if (known.outcome !== undefined) report(known.outcome)
      return
    }
    const items = process.itemsOf(order.segment)
    const segment = process.segmentOf(order.segment)
    if (segment === undefined || items.length < order.end) {
      const why = `it has ${items.length} entries of ${order.end}`
      return report({ failed: [{ node: process.id, why }] })
    }
    const next = [...segment.firstOffsets]
    for (const { partition } of items.slice(0, order.end)) {
      next[partition] = (next[partition] ?? 0) + 1
    }
    const { token, end, tailFrom, replicas } = order
    const tail = items.slice(tailFrom, end)
    const staged = { segment: order.segment + 1, token, next, tailFrom, tail }
    const times = { sinceMs: process.now, sentMs: Number.NEGATIVE_INFINITY }
    jobs.set(token, {
      order,
      staged,
      missing: new Set(replicas),
      outcome: undefined,
      report,
      ...times,
    })
    this.tick()
  }

  tick(): void {
    for (const job of this.jobs.values()) {
      if (job.outcome !== undefined) continue
      if (this.process.now - job.sinceMs >= GIVE_UP_MS) {
        const failed = [...job.missing].map((node) => ({ node, why: 'it has stored nothing' }))
        this.done(job, { failed })
      } else if (this.process.now - job.sentMs >= SEND_AGAIN_MS) this.send(job)
    }
  }

  private send(job: Job): void {
    const { process } = this
    const { staged } = job
    job.sentMs = process.now
    for (const node of job.missing) {
      if (node === process.id) {
        this.store(staged, () => this.stored(job, node))
        continue
      }
      process.world.net.stream(process, node, `stage ${staged.token}`, (to) => {
        to.desk.store(staged, () => {
          to.world.net.stream(to, process.id, `stored ${staged.token}`, (back) => {
            if (back === process) this.stored(job, node)
          })
        })
      })
    }
  }

  private stored(job: Job, node: NodeId): void {
    job.missing.delete(node)
    if (job.missing.size > 0 || job.outcome !== undefined) return
    const nextOffsets = job.staged.next
    this.done(job, { nextOffsets, stateDigest: nextOffsets.join() })
  }

  private done(job: Job, outcome: StageOutcome): void {
    job.outcome = outcome
    job.report(outcome)
    this.process.world.seize(this.process, 'a staging was done')
  }

  // ---- a member

  store(staged: Omit<Staged, 'boot'>, done: () => void): void {
    const { process } = this
    const { disk } = process.broker
    if (disk.staged.has(staged.token)) return done()
    // What has committed otherwise needs nothing staged.
    const committed = process.segmentOf(staged.segment)
    if (committed !== undefined && committed.token !== staged.token) return
    disk.write({ kind: 'staged', staged: { ...staged, boot: process.boot } }, () => {
      process.world.truth.storedTail(process.id, staged)
      done()
    })
  }

  /** The log says which token committed, and when nobody needs a tail any more. */
  forget(): void {
    const { process } = this
    const { disk } = process.broker
    for (const [token, staged] of disk.staged) {
      const committed = process.segmentOf(staged.segment)
      if (committed === undefined) continue
      if (committed.token !== token) disk.staged.delete(token)
      else if (process.segmentOf(staged.segment - 1)?.digest !== '') {
        disk.staged.set(token, { ...staged, tail: [] })
      }
    }
  }

  // ---- a follower of what was staged

  opened(leader: NodeId, number: number, token: string): Opened {
    const { process } = this
    const known = process.following.get(number)
    if (known !== undefined) {
      return known.machine.leader === leader ? known.opened() : { refuse: 'another leads it' }
    }
    if (process.leading.has(number)) return { refuse: 'another leads it' }
    const staged = process.stagedUnder(token)
    if (staged?.boot !== process.boot) return 'not-yet'
    return process.follower(number, leader, false).opened()
  }
}

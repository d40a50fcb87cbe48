// The end of a segment whose leader failed (PROTOCOLS §5): what fenced replicas answer, and which end follows from it.
//
//   fence ──> every replica, until it has answered          the end: the greatest SURE answer
//   answer    end, high watermark seen, sure or not         the holder: who gave exactly that
//
// No acknowledgement lies above any sure answer, so any one of them is enough, and a lower end is as safe as a greater one; the
// greatest loses least. An unsure answer sets no end, and is no source. A high watermark above the end, whoever saw it, means
// that something readable is missing: then there is no end.
//
// An answer counts for the start of its sender that gave it, and while its sender is alive.

import type { NodeId } from '../../model/ids.ts'
import type { FenceAnswer, Forceable, SegmentTiming } from './types.ts'

interface Answered {
  readonly answer: FenceAnswer
  readonly firstMs: number
}

export interface FencedEnd {
  readonly end: number
  /** Who gave exactly this end, surely, in the order of the replica set. */
  readonly holders: readonly NodeId[]
}

export class Fencing {
  readonly sinceMs: number
  private readonly answers = new Map<NodeId, Answered>()
  private readonly replicas: readonly NodeId[]
  private readonly sent = new Map<NodeId, { atMs: number; times: number }>()

  constructor(replicas: readonly NodeId[], nowMs: number) {
    this.replicas = replicas
    this.sinceMs = nowMs
  }

  /** False: it counts for nothing, since its sender is no replica. */
  answered(from: NodeId, answer: FenceAnswer, nowMs: number): boolean {
    if (!this.replicas.includes(from)) return false
    const earlier = this.answers.get(from)
    // Asked again, a replica may have more by now; an answer that was overtaken on the way has less.
    if (earlier?.answer.boot === answer.boot && earlier.answer.end > answer.end) return true
    this.answers.set(from, { answer, firstMs: earlier?.firstMs ?? nowMs })
    return true
  }

  has(node: NodeId): boolean {
    return this.answers.has(node)
  }

  /** Drops what an earlier start than this one gave. */
  bootIs(node: NodeId, boot: number): void {
    const held = this.answers.get(node)
    if (held === undefined || held.answer.boot >= boot) return
    this.answers.delete(node)
    this.sent.delete(node)
  }

  /** Who is to be asked (again). Whoever does not answer is asked less often, never given up. */
  due(nowMs: number, timing: SegmentTiming): readonly NodeId[] {
    const due: NodeId[] = []
    for (const node of this.replicas) {
      if (this.answers.has(node)) continue
      const sent = this.sent.get(node)
      const pause = sent === undefined ? 0 : Math.min(1000, timing.retryMs * sent.times)
      if (sent !== undefined && nowMs - sent.atMs < pause) continue
      this.sent.set(node, { atMs: nowMs, times: (sent?.times ?? 0) + 1 })
      due.push(node)
    }
    return due
  }

  /** Every replica of which an answer is expected has answered, or there was time enough for it since the first sure answer. */
  waited(expected: (node: NodeId) => boolean, nowMs: number, timing: SegmentTiming): boolean {
    if (this.replicas.every((node) => this.answers.has(node) || !expected(node))) return true
    const sure = [...this.answers.values()].filter((one) => one.answer.unsure === undefined)
    const first = Math.min(...sure.map((one) => one.firstMs))
    return nowMs - first >= timing.fenceWaitMs
  }

  /** Of those answerers of whom `counts` holds. Undefined: there is no sure answer among them. */
  end(counts: (node: NodeId) => boolean): FencedEnd | undefined {
    let end = -1
    for (const [node, { answer }] of this.answers) {
      if (answer.unsure === undefined && counts(node)) end = Math.max(end, answer.end)
    }
    if (end < 0) return undefined
    const holders = this.replicas.filter((node) => {
      const answer = this.answers.get(node)?.answer
      return answer?.unsure === undefined && answer?.end === end && counts(node)
    })
    return { end, holders }
  }

  /** What those have who have answered, sure or not. */
  held(counts: (node: NodeId) => boolean): Forceable['answers'] {
    return [...this.answers].flatMap(([node, { answer }]) => {
      const { end, unsure } = answer
      return counts(node) ? [{ node, end, unsure }] : []
    })
  }

  /** For people: who said what. */
  told(): Readonly<Record<string, string>> {
    const told: Record<string, string> = {}
    for (const node of this.replicas) {
      const answer = this.answers.get(node)?.answer
      told[node] =
        answer === undefined
          ? 'no answer'
          : `${answer.end} entries${answer.unsure === undefined ? '' : `, unsure: ${answer.unsure}`}`
    }
    return told
  }
}

// What the replicas of a sealed segment say that they hold, each for its present start, and whom to ask when. A replica that
// copies is asked less and less often; one that has said that it is whole is asked again before that counts as old.

import type { NodeId } from '../../model/ids.ts'
import { pauseMs } from './avoided.ts'
import type { InspectAnswer, SegmentTiming } from './types.ts'

/** A proof counts for so long. */
const PROOF_MS = 20_000
const ASK_AGAIN_MS = 10_000

interface Inspection {
  boot: number | undefined
  answer: InspectAnswer | undefined
  answeredMs: number
  /** When it last said something new, or was first asked. */
  movedMs: number | undefined
  asked: number
  nextMs: number
}

export class Inspections {
  private readonly timing: SegmentTiming
  private readonly byNode = new Map<NodeId, Inspection>()

  constructor(timing: SegmentTiming) {
    this.timing = timing
  }

  keepOnly(replicas: readonly NodeId[]): void {
    for (const node of this.byNode.keys()) if (!replicas.includes(node)) this.byNode.delete(node)
  }

  forget(node: NodeId): void {
    this.byNode.delete(node)
  }

  /** What an earlier start said does not count. */
  bootIs(node: NodeId, boot: number | undefined): void {
    if (boot === undefined) return
    const held = this.of(node)
    if (held.boot === boot) return
    if (held.boot !== undefined) {
      this.byNode.delete(node)
      this.of(node).boot = boot
    } else held.boot = boot
  }

  /** True: it is in another state than before. */
  answered(node: NodeId, answer: InspectAnswer, nowMs: number): boolean {
    const held = this.of(node)
    const news = held.answer?.kind !== answer.kind
    const more =
      held.answer?.kind === 'part' && answer.kind === 'part' && held.answer.end < answer.end
    if (news || more) held.movedMs = nowMs
    if (news) held.asked = 0
    held.answer = answer
    held.answeredMs = nowMs
    held.nextMs = nowMs + this.pause(held)
    return news
  }

  /** Who is to be asked (again). */
  due(nodes: readonly NodeId[], nowMs: number): readonly NodeId[] {
    return nodes.filter((node) => {
      const held = this.of(node)
      if (nowMs < held.nextMs) return false
      held.asked++
      held.movedMs ??= nowMs
      held.nextMs = nowMs + this.pause(held)
      return true
    })
  }

  /** Digests of those that are whole, with who has them. */
  digests(nodes: readonly NodeId[]): Map<string, NodeId[]> {
    const found = new Map<string, NodeId[]>()
    for (const node of nodes) {
      const answer = this.byNode.get(node)?.answer
      if (answer?.kind !== 'whole') continue
      const same = found.get(answer.digest)
      if (same === undefined) found.set(answer.digest, [node])
      else same.push(node)
    }
    return found
  }

  proves(node: NodeId, digest: string, nowMs: number): boolean {
    const held = this.byNode.get(node)
    if (held?.answer?.kind !== 'whole' || held.answer.digest !== digest) return false
    return nowMs - held.answeredMs < PROOF_MS
  }

  /** It is not whole, and has not come nearer to it for so long. */
  stalled(node: NodeId, nowMs: number, forMs: number): boolean {
    const held = this.byNode.get(node)
    if (held?.movedMs === undefined || held.answer?.kind === 'whole') return false
    return nowMs - held.movedMs >= forMs
  }

  private pause({ answer, asked }: Inspection): number {
    return answer?.kind === 'whole' ? ASK_AGAIN_MS : pauseMs(asked + 1, this.timing.retryMs)
  }

  private of(node: NodeId): Inspection {
    let held = this.byNode.get(node)
    if (held === undefined) {
      held = {
        boot: undefined,
        answer: undefined,
        answeredMs: 0,
        movedMs: undefined,
        asked: 0,
        nextMs: 0,
      }
      this.byNode.set(node, held)
    }
    return held
  }
}

// Which brokers get the successor of a segment, and who hands them its state and tail.
//
//   holder   has exactly the end                            leads the successor, unless it is distrusted, or leaves
//   kept     replicas that are well: only empty seats are filled
//   without  who failed lately; before too few are left taken all the same, who failed longest ago first

import type { NodeId } from '../../model/ids.ts'
import type { Candidates, CareView } from './care-types.ts'
import type { EndReason } from './types.ts'

interface Facts {
  readonly view: CareView
  readonly candidates: Candidates
  readonly end: number
  /** At least one. */
  readonly holders: readonly NodeId[]
  readonly tailFrom: number
  readonly why: EndReason
  /** Who failed last comes last. */
  readonly without: ReadonlySet<NodeId>
  /** The leader that gave the end is what failed. */
  readonly distrusted: boolean
  failedHolder(node: NodeId): boolean
}

export type Plan =
  | {
      readonly holder: NodeId
      readonly end: number
      readonly why: EndReason
      readonly tailFrom: number
      readonly replicas: readonly NodeId[]
    }
  | { readonly tooFew: number }

export function planSuccessor(facts: Facts): Plan {
  const { view, candidates, end, tailFrom, why } = facts
  const { replicationFactor, minInsyncReplicas } = view.policy
  const [leader] = view.segment.replicas
  const holder = chooseHolder(facts)
  const { without, distrusted } = facts
  const alive = view.segment.replicas.filter((node) => candidates.alive(node))
  const first = distrusted ? anotherLeader(facts, alive) : holder
  const least = Math.max(1, minInsyncReplicas)
  const out = new Set(without)
  const pick = (): readonly NodeId[] =>
    candidates.pick(
      replicationFactor,
      alive.filter((node) => !out.has(node)),
      first,
      out,
    )
  let replicas = pick()
  for (const node of without) {
    if (replicas.length >= least) break
    out.delete(node)
    replicas = pick()
  }
  if (replicas.length < least) return { tooFew: replicas.length }
  if (distrusted && replicas[0] === leader)
    replicas = [...replicas.slice(1), ...replicas.slice(0, 1)]
  return { holder, end, why, tailFrom, replicas }
}

/** The old leader last when it failed, since whatever ails it may not be over; who only restarted leads on. */
function chooseHolder(facts: Facts): NodeId {
  const { holders, view, candidates, why, without } = facts
  const [leader] = view.segment.replicas
  const rank = (node: NodeId): number =>
    (facts.failedHolder(node) ? 8 : 0) +
    (candidates.leaving(node) ? 4 : 0) +
    (without.has(node) ? 2 : 0) +
    (node === leader && why === 'leader-failed' ? 1 : 0)
  const [best] = holders.toSorted((a, b) => rank(a) - rank(b))
  return best as NodeId
}

function anotherLeader({ view, without }: Facts, alive: readonly NodeId[]): NodeId | undefined {
  const others = alive.filter((node) => node !== view.segment.replicas[0])
  return others.find((node) => !without.has(node)) ?? others[0]
}

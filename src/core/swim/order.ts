// Which of two pieces of news about a node counts. Everyone must decide alike, in whatever order they arrive.
//
//   the later life (boot count; between two that claim one boot count, the nonce)
//     then the greater incarnation, which only the member itself raises: so it can contradict what is said of it
//       then alive < suspect < dead < left: of one incarnation, the worst that was said

import type { Life, Member, MemberState } from '../../model/swim.ts'

const RANK: Readonly<Record<MemberState, number>> = { alive: 0, suspect: 1, dead: 2, left: 3 }

export function compareLives(a: Life, b: Life): number {
  return a.boot - b.boot || a.nonce - b.nonce
}

/** Above zero: `a` replaces `b`. */
export function compareNews(a: Member, b: Member): number {
  return compareLives(a, b) || a.incarnation - b.incarnation || RANK[a.state] - RANK[b.state]
}

/** Whether it is to be reckoned with: suspicion alone takes nobody out. */
export function isLive(state: MemberState): boolean {
  return state === 'alive' || state === 'suspect'
}

// What the judge of a cluster knows beside it, and holds every member to. It shares nothing with what it judges but the words.

import type { SwimEvent } from '../../../src/core/swim/types.ts'
import type { Update } from '../../../src/model/swim.ts'

/** Of one node's life. */
function lifeOf({ node, boot, nonce }: { node: string; boot: number; nonce: number }): string {
  return `${node}/${boot}/${nonce}`
}

export class Truth {
  readonly violations: string[] = []
  private readonly say: (line: string) => void
  /** The greatest incarnation that each life has given itself. */
  private readonly raised = new Map<string, number>()

  constructor(say: (line: string) => void) {
    this.say = say
  }

  violation(what: string): void {
    this.violations.push(what)
    this.say(`VIOLATION: ${what}`)
  }

  /** The member itself is there with this incarnation. */
  owns(member: Update['member']): void {
    this.raised.set(lifeOf(member), member.incarnation)
  }

  /** Somebody sends this. */
  sent(by: string, { member }: Update): void {
    const raised = this.raised.get(lifeOf(member))
    if (raised === undefined) return this.violation(`${by} speaks of a life that never was`)
    if (member.incarnation > raised) {
      this.violation(
        `${by} says incarnation ${member.incarnation} of ${member.profile.name}, which is at ${raised}`,
      )
    }
  }
}

/** What one observer in one life has seen of the others. */
export class Observed {
  private readonly truth: Truth
  private readonly name: string
  private readonly terms = new Map<number, number>()
  private readonly news = new Map<string, { readonly key: readonly number[]; state: string }>()

  constructor(truth: Truth, name: string) {
    this.truth = truth
    this.name = name
  }

  event(event: SwimEvent): void {
    if (event.kind === 'forgotten') this.news.delete(event.node)
    if (event.kind === 'hint') {
      const { shard, term } = event.hint
      if (term <= (this.terms.get(shard) ?? 0)) {
        this.truth.violation(`${this.name} takes term ${term} of shard ${shard} for news`)
      }
      this.terms.set(shard, term)
    }
    if (event.kind !== 'member') return
    const { member } = event
    const key = [member.boot, member.nonce, member.incarnation]
    const before = this.news.get(member.node)
    if (before !== undefined) {
      const at = key.findIndex((value, i) => value !== before.key[i])
      if (at >= 0 && (key[at] ?? 0) < (before.key[at] ?? 0)) {
        const was = before.key.join('/')
        this.truth.violation(
          `${this.name} goes back from ${was} to ${key.join('/')} of ${member.profile.name}`,
        )
      }
      const sameLife = at < 0 || at === 2
      if (sameLife && before.state === 'left' && member.state !== 'left') {
        this.truth.violation(
          `${this.name} holds ${member.profile.name} for ${member.state}, which has left`,
        )
      }
    }
    this.news.set(member.node, { key, state: member.state })
  }
}

// Which proposals a leader has taken in its term, so that one that is sent again is not taken twice. A proposer numbers its
// proposals and says with each below which number it has the outcome of all: those are forgotten. So what is remembered is
// what is under way, and that is bounded at the proposer.

interface FromOne {
  below: number
  readonly taken: Set<number>
}

export class Accepted {
  private term = 0
  private readonly from = new Map<string, FromOne>()

  /** Whether it was taken already. Of a new term nothing has been. */
  knows(term: number, proposer: string, number: number, below: number): boolean {
    if (term !== this.term) {
      this.term = term
      this.from.clear()
    }
    const one = this.of(proposer)
    if (below > one.below) {
      one.below = below
      for (const known of one.taken) if (known < below) one.taken.delete(known)
    }
    return number < one.below || one.taken.has(number)
  }

  add(proposer: string, number: number): void {
    this.of(proposer).taken.add(number)
  }

  private of(proposer: string): FromOne {
    let one = this.from.get(proposer)
    if (one === undefined) {
      one = { below: 0, taken: new Set() }
      this.from.set(proposer, one)
    }
    return one
  }
}

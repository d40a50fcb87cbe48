// Whose turn it is: by bytes, whatever the sizes of entries, and bulk a quarter at most while anything else is ready.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { FairFlows } from '../../../src/broker/data/fair-flows.ts'

const KIB = 1024

/** Has frames of these sizes, one after another, and gives as many as the budget holds, at least one. */
class Backlog {
  readonly bulk: boolean
  sent = 0
  asked = 0
  private readonly sizeOf: (n: number) => number
  private left: number
  private n = 0

  constructor(
    bulk: boolean,
    sizeOf: (n: number) => number,
    left: number = Number.POSITIVE_INFINITY,
  ) {
    this.bulk = bulk
    this.sizeOf = sizeOf
    this.left = left
  }

  fill(budget: number): readonly Uint8Array[] {
    this.asked++
    assert.ok(budget > 0)
    const frames: Uint8Array[] = []
    let bytes = 0
    for (;;) {
      const size = this.sizeOf(this.n)
      if (this.left === 0 || (bytes > 0 && bytes + size > budget)) break
      frames.push(new Uint8Array(size))
      bytes += size
      this.n++
      this.left--
      if (bytes >= budget) break
    }
    this.sent += bytes
    return frames
  }
}

function run(flows: FairFlows, bytes: number): void {
  for (let sent = 0; sent < bytes; ) {
    const buffers = flows.next()
    if (buffers.length === 0) return
    for (const buffer of buffers) sent += buffer.length
  }
}

describe('flows that are all ready', () => {
  it('send the same number of bytes, whatever the sizes of what they send', () => {
    const sizes = fc.array(fc.integer({ min: 1000, max: 300 * KIB }), {
      minLength: 2,
      maxLength: 6,
    })
    const holds = fc.property(sizes, (all) => {
      const flows = new FairFlows()
      const backlogs = all.map((size) => new Backlog(false, () => size))
      for (const one of backlogs) flows.add(one).ready()
      run(flows, 20 * 1024 * KIB)
      const sent = backlogs.map((one) => one.sent)
      // A turn, what is kept of one, and the largest that is sent at once.
      const apart = 2 * 64 * KIB + Math.max(...all)
      const [least, most] = [Math.min(...sent), Math.max(...sent)]
      assert.ok(most - least <= 2 * apart, `${least} to ${most}`)
    })
    fc.assert(holds, { numRuns: 30 })
  })

  it('give bulk a quarter, and all that is left', () => {
    const flows = new FairFlows()
    const plain = [10 * KIB, 100 * KIB].map((size) => new Backlog(false, () => size))
    const bulk = [70 * KIB, 64 * KIB].map((size) => new Backlog(true, () => size))
    for (const one of [...plain, ...bulk]) flows.add(one).ready()
    run(flows, 40 * 1024 * KIB)
    const sum = (some: readonly Backlog[]): number => some.reduce((n, one) => n + one.sent, 0)
    const share = sum(bulk) / (sum(bulk) + sum(plain))
    assert.ok(share > 0.24 && share < 0.26, `${share}`)
    const alone = new FairFlows()
    alone.add(new Backlog(true, () => KIB)).ready()
    run(alone, 1024 * KIB)
  })
})

describe('a flow', () => {
  it('is not asked before it is ready, nor again before it is ready again', () => {
    const flows = new FairFlows()
    const one = new Backlog(false, () => 10, 3)
    const turn = flows.add(one)
    assert.deepEqual(flows.next(), [])
    assert.equal(one.asked, 0)
    turn.ready()
    turn.ready()
    assert.equal(flows.next().length, 3)
    assert.deepEqual(flows.next(), [])
    assert.deepEqual(flows.next(), [])
    assert.equal(one.asked, 2)
    turn.ready()
    flows.next()
    assert.equal(one.asked, 3)
  })

  it('that is closed is not asked, also when it was ready, and when it closes while it is asked', () => {
    const flows = new FairFlows()
    const one = new Backlog(false, () => 10)
    const turn = flows.add(one)
    turn.ready()
    turn.close()
    turn.ready()
    assert.deepEqual(flows.next(), [])
    let asked = 0
    const own = flows.add({
      bulk: false,
      fill: () => {
        asked++
        own.close()
        return [new Uint8Array(1)]
      },
    })
    own.ready()
    assert.equal(flows.next().length, 1)
    assert.deepEqual(flows.next(), [])
    assert.deepEqual([one.asked, asked], [0, 1])
  })

  it('that says it is ready while it has nothing is asked again', () => {
    const flows = new FairFlows()
    const answers: (readonly Uint8Array[])[] = [[], [new Uint8Array(5)]]
    const turn = flows.add({
      bulk: false,
      fill: () => {
        if (answers.length === 2) turn.ready()
        return answers.shift() ?? []
      },
    })
    turn.ready()
    assert.equal(flows.next().length, 1)
  })

  it('that sent more than its turn lets the others catch up', () => {
    const flows = new FairFlows()
    const large = new Backlog(false, (n) => (n === 0 ? 1024 * KIB : 10 * KIB))
    const small = new Backlog(false, () => 10 * KIB)
    flows.add(large).ready()
    flows.next()
    flows.add(small).ready()
    assert.equal(large.sent, 1024 * KIB)
    run(flows, 900 * KIB)
    assert.ok(small.sent > 450 * KIB, `${small.sent}`)
  })
})

// Operations of a simulated disk that wait at the same time, ended in any order, without a clock.

import { prng } from '../../../src/base/prng.ts'

export function shuffled(seed: number): (run: () => void) => void {
  const chance = prng(seed)
  const waiting: (() => void)[] = []
  let started = false
  const someOf = (): void => {
    for (let left = 1 + chance.below(waiting.length); left > 0 && waiting.length > 0; left--) {
      const [run] = waiting.splice(chance.below(waiting.length), 1)
      run?.()
    }
    if (waiting.length > 0) soon()
    else started = false
  }
  /** Late enough for what the last ones led to to be waiting, too. */
  const soon = (): void => {
    started = true
    queueMicrotask(() => queueMicrotask(someOf))
  }
  return (run) => {
    waiting.push(run)
    if (!started) soon()
  }
}

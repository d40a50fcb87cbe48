// node build/test/core/segment/main.js --seed S --count N: one world after another; tells the end of the story of the first
// that violates something, --lines of it, and exits 1.

import { parseArgs } from 'node:util'
import { runSegment } from './judge/world.ts'

const { values } = parseArgs({
  options: { seed: { type: 'string' }, count: { type: 'string' }, lines: { type: 'string' } },
})
const lines = Number(values.lines ?? 100)
const first = Number(values.seed ?? 1)
const count = Number(values.count ?? 1)
let [acknowledged, segments, peaceMs] = [0, 0, 0]
for (let seed = first; seed < first + count; seed++) {
  const run = runSegment(seed)
  if (run.violations.length > 0) {
    console.log(`seed ${seed}: ${run.violations[0]}`)
    console.log(runSegment(seed, true).story.slice(-lines).join('\n'))
    // Not process.exit: a pipe may not have taken all of it yet.
    process.exitCode = 1
    break
  }
  acknowledged += run.acknowledged
  segments += run.segments
  peaceMs = Math.max(peaceMs, run.peaceMs)
}
console.log(
  `${count} seeds from ${first}: ${acknowledged} acknowledged, ${segments} segments, peace within ${Math.round(peaceMs)} ms`,
)

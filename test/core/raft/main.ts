// node build/test/core/raft/main.js --seed S --count N: one Raft group after another; tells the end of the story of the first
// that violates something, --lines of it, and exits 1.

import { parseArgs } from 'node:util'
import { runRaft } from './cluster.ts'

const { values } = parseArgs({
  options: { seed: { type: 'string' }, count: { type: 'string' }, lines: { type: 'string' } },
})
const lines = Number(values.lines ?? 100)
const first = Number(values.seed ?? 1)
const count = Number(values.count ?? 1)
let [acknowledged, reads, leaders, conflicts] = [0, 0, 0, 0]
for (let seed = first; seed < first + count; seed++) {
  const run = runRaft(seed)
  if (run.violations.length > 0) {
    console.log(`seed ${seed}: ${run.violations[0]}`)
    console.log(runRaft(seed, true).story.slice(-lines).join('\n'))
    process.exit(1)
  }
  acknowledged += run.acknowledged
  reads += run.readsAnswered
  leaders += run.leaders
  conflicts += run.conflicts
}
console.log(
  `${count} seeds from ${first}: ${acknowledged} acknowledged, ${reads} reads, ${leaders} leaders, ` +
    `${conflicts} entries replaced`,
)

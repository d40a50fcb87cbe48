// node build/test/core/raft/main.js --seed S --count N: one Raft group after another; tells the story of the first that
// violates something and exits 1.

import { parseArgs } from 'node:util'
import { runRaft } from './cluster.ts'

const { values } = parseArgs({ options: { seed: { type: 'string' }, count: { type: 'string' } } })
const first = Number(values.seed ?? 1)
const count = Number(values.count ?? 1)
let [acknowledged, reads, leaders] = [0, 0, 0]
for (let seed = first; seed < first + count; seed++) {
  const run = runRaft(seed)
  if (run.violations.length > 0) {
    console.log(`seed ${seed}: ${run.violations[0]}`)
    console.log(run.story.slice(-60).join('\n'))
    process.exit(1)
  }
  acknowledged += run.acknowledged
  reads += run.readsAnswered
  leaders += run.leaders
}
console.log(
  `${count} seeds from ${first}: ${acknowledged} acknowledged, ${reads} reads, ${leaders} leaders`,
)

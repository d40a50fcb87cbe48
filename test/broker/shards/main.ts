// node build/test/broker/shards/main.js --seed S --count N: one world after another; tells what is wrong in the first that
// violates something and exits 1.

import { parseArgs } from 'node:util'
import { runSeed } from './trouble.ts'

const { values } = parseArgs({ options: { seed: { type: 'string' }, count: { type: 'string' } } })
const first = Number(values.seed ?? 1)
const count = Number(values.count ?? 1)
let answered = 0
for (let seed = first; seed < first + count; seed++) {
  const { truth } = await runSeed(seed)
  if (truth.violations.length > 0) {
    console.log(`seed ${seed}: ${truth.violations.join('\n')}`)
    process.exit(1)
  }
  answered += truth.answered
}
console.log(`${count} seeds from ${first}: ${answered} answered`)

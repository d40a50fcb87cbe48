// node build/test/core/swim/main.js --seed S --count N: one cluster after another; tells the story of the first that
// violates something and exits 1.

import { parseArgs } from 'node:util'
import { runSwim, type SwimRun } from './run.ts'

const { values } = parseArgs({
  options: { seed: { type: 'string' }, count: { type: 'string' }, lines: { type: 'string' } },
})
const first = Number(values.seed ?? 1)
const count = Number(values.count ?? 1)
const lines = Number(values.lines ?? 60)
const detected: number[] = []
let [suspicions, deaths, most, peak] = [0, 0, 0, 0]
for (let seed = first; seed < first + count; seed++) {
  const run = runOrTell(seed)
  if (run.violations.length > 0) {
    console.log(`seed ${seed}: ${run.violations[0]}`)
    console.log(run.story.slice(-lines).join('\n'))
    process.exit(1)
  }
  suspicions += run.suspicions
  deaths += run.deaths
  if (run.detectedMs !== undefined) detected.push(run.detectedMs)
  most = Math.max(most, run.packetsPerSecond)
  peak = Math.max(peak, run.packetsInOneSecond)
}
detected.sort((a, b) => a - b)
const quantile = (share: number): string =>
  ((detected[Math.floor(share * (detected.length - 1))] ?? 0) / 1000).toFixed(1)
console.log(`${count} seeds from ${first}: ${suspicions} suspicions, ${deaths} deaths seen`)
console.log(
  `a death known by all after ${quantile(0.5)} s, 99 %: ${quantile(0.99)}, at most ${quantile(1)}`,
)
console.log(`at most ${most.toFixed(1)} packets per second and member, ${peak} in the busiest`)

/** What throws is as wrong. */
function runOrTell(seed: number): SwimRun {
  try {
    return runSwim(seed)
  } catch (error) {
    console.log(`seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`)
    process.exit(1)
  }
}

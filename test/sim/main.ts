// npm run sim -- --scenario storage|cluster|membership|replication --seed S [--count N]
//                [--keep STEPS] [--trace]            one seed, or a part of its plan
//                [--save FILE] [--plan FILE]         a shortened plan is kept, or one that was kept is run
//
// The first seed that violates something ends it: its plan is shortened to the steps that matter, its story is told, and
// the command that replays it is printed. Exit code 1 then.

import { readFileSync, writeFileSync } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import { wholeNumber } from '../../src/cli/commands/arguments.ts'
import { shrink } from '../../src/sim/shrink.ts'
import { secondsSince } from '../support/time.ts'
import { type Plan, SCENARIOS, type Scenario } from './scenarios.ts'
import { runSeeds } from './seeds.ts'

interface Options {
  readonly scenario: string
  readonly seed: number
  readonly count: number
  readonly keep?: readonly number[]
  readonly trace: boolean
  readonly save?: string
  readonly plan?: string
}

async function simulate(options: Options): Promise<number> {
  const { seed, count, keep, plan } = options
  const { planOf } = scenarioOf(options)
  if (plan !== undefined) return one(JSON.parse(readFileSync(plan, 'utf8')) as Plan, options)
  if (keep !== undefined) return one(only(planOf(seed), keep), options)
  if (count === 1) return one(planOf(seed), options)
  const began = performance.now()
  const every = Math.max(100, Math.floor(count / 20))
  const result = await runSeeds(options.scenario, seed, count, {
    progress: (done) => {
      if (done % every === 0) console.log(`${done} of ${count} seeds, ${secondsSince(began)} s`)
    },
  })
  console.log(
    `${result.seeds} seeds from ${seed}, ${secondsSince(began)} s: ${told(result.counts)}`,
  )
  return result.failed === undefined ? 0 : one(planOf(result.failed), options)
}

/** One run of one plan; a failure is shortened and explained. */
async function one(plan: Plan, options: Options): Promise<number> {
  const { trace, save, scenario } = options
  const { run } = scenarioOf(options)
  const { story, violations, counts } = await run(plan)
  if (trace) console.log(story.join('\n'))
  if (violations.length === 0) {
    if (save !== undefined) writeFileSync(save, `${JSON.stringify(plan, undefined, 2)}\n`)
    console.log(`seed ${plan.seed}: 0 violations: ${told(counts)}`)
    return 0
  }
  console.log(`seed ${plan.seed}: ${violations[0]}`)
  const kept = await shrink(
    plan.steps.map((_, i) => i),
    async (steps) => (await run(only(plan, steps))).violations.length > 0,
  )
  const short = only(plan, kept)
  const shortened = await run(short)
  console.log(`shortened from ${plan.steps.length} to ${kept.length} steps:`)
  console.log(shortened.story.join('\n'))
  for (const violation of shortened.violations.slice(0, 20)) console.log(`violated: ${violation}`)
  if (save !== undefined) writeFileSync(save, `${JSON.stringify(short, undefined, 2)}\n`)
  const steps = kept.length === 0 ? 'none' : kept.join(',')
  const what = `--scenario ${scenario} --seed ${plan.seed} --keep ${steps} --trace`
  console.log(`replay: npm run sim -- ${what}`)
  return 1
}

function scenarioOf({ scenario }: Options): Scenario {
  return SCENARIOS[scenario] as Scenario
}

function told(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, number]) => `${Math.round(number)} ${name}`)
    .join(', ')
}

function only(plan: Plan, steps: readonly number[]): Plan {
  return { ...plan, steps: plan.steps.filter((_, i) => steps.includes(i)) }
}

const command = new Command('sim')
  .description('Runs the whole broker and its clients in a simulated world, seed after seed.')
  .option(
    '--scenario <name>',
    'what is simulated: storage, one broker on a disk that fails; cluster, brokers and a network that fails; membership, brokers that come and go; replication, brokers that hold records and lose them',
    (name) => {
      if (name in SCENARIOS) return name
      throw new InvalidArgumentError(`there are ${Object.keys(SCENARIOS).join(' and ')}`)
    },
    'storage',
  )
  .option('--seed <number>', 'the first seed', wholeNumber(0), 1)
  .option('--count <number>', 'how many seeds', wholeNumber(0), 1)
  .option('--keep <steps>', 'only these steps of the plan, as 3,17,22', (text) =>
    text === 'none' ? [] : text.split(',').map(wholeNumber(0)),
  )
  .option('--trace', 'tell the story of the run', false)
  .option('--save <file>', 'keep the shortened plan')
  .option('--plan <file>', 'run a plan that was kept')
  .allowExcessArguments(false)

command.action(async (options: Options) => {
  process.exitCode = await simulate(options)
})
await command.parseAsync()

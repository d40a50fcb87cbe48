// npm run mutations -- [--seeds N] [--judge TEXT] [--only TEXT]
//
// Breaks one rule after another in a copy of the compiled code and runs the simulator on it until a seed finds it. Prints
// which seed that was; exits 1 when one is not found within --seeds. A rule that can be broken unseen has no judge.

import { spawn } from 'node:child_process'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Table from 'cli-table3'
import { Command } from 'commander'
import { wholeNumber } from '../../src/cli/commands/arguments.ts'
import { CLUSTER_MUTATIONS, SHARDS_MUTATIONS } from './cluster.ts'
import { MEMBERSHIP_MUTATIONS } from './membership.ts'
import { editsOf, mutate } from './mutate.ts'
import { RAFT_MUTATIONS } from './raft.ts'
import { REPLICATION_MUTATIONS } from './replication.ts'
import { SEGMENT_MUTATIONS } from './segment.ts'
import { type Mutation, STORAGE_MUTATIONS } from './storage.ts'
import { SWIM_MUTATIONS } from './swim.ts'

interface Judge {
  /** One of those that `main` knows, if it knows several. */
  readonly scenario?: string
  /** Takes --seed and --count, says `seed <n>: ...` of the first that it finds wrong and then exits with 1. */
  readonly main: string
  readonly mutations: readonly Mutation[]
}

const JUDGES: readonly Judge[] = [
  { main: 'test/sim/main.js', mutations: STORAGE_MUTATIONS },
  { main: 'test/sim/main.js', scenario: 'cluster', mutations: CLUSTER_MUTATIONS },
  { main: 'test/sim/main.js', scenario: 'membership', mutations: MEMBERSHIP_MUTATIONS },
  { main: 'test/sim/main.js', scenario: 'replication', mutations: REPLICATION_MUTATIONS },
  { main: 'test/broker/shards/main.js', mutations: SHARDS_MUTATIONS },
  { main: 'test/core/raft/main.js', mutations: RAFT_MUTATIONS },
  { main: 'test/core/segment/main.js', mutations: SEGMENT_MUTATIONS },
  { main: 'test/core/swim/main.js', mutations: SWIM_MUTATIONS },
]

/** Beside build/, so that the copy finds the same packages. */
const MUTANTS = 'mutants'

/** The number of seeds it took, or undefined. */
async function seedsToFind(
  { main, scenario }: Judge,
  mutation: Mutation,
  seeds: number,
): Promise<number | undefined> {
  const dir = join(MUTANTS, mutation.name.replaceAll(/[^a-z]+/gi, '-'))
  await rm(dir, { recursive: true, force: true })
  await mkdir(MUTANTS, { recursive: true })
  await cp('build', dir, { recursive: true })
  for (const edit of editsOf(mutation)) {
    const path = join(dir, edit.file)
    await writeFile(path, mutate(await readFile(path, 'utf8'), edit, mutation.name))
  }
  try {
    const which = scenario === undefined ? [] : ['--scenario', scenario]
    return await firstFailure([join(dir, main), ...which], seeds)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

const FOUND = /^seed (\d+):/m

function firstFailure(judge: readonly string[], seeds: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const range = ['--seed', '1', '--count', String(seeds)]
    const child = spawn(process.execPath, [...judge, ...range], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let text = ''
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      // What follows is only for people.
      if (FOUND.test(text)) child.kill()
    })
    child.on('error', reject)
    child.on('exit', (code) => {
      const found = FOUND.exec(text)?.[1]
      if (code === 0) resolve(undefined)
      else if (found === undefined) reject(new Error(`the simulator ended with ${code}:\n${text}`))
      else resolve(Number(found))
    })
  })
}

const command = new Command('mutations')
  .description('Breaks one rule after another and sees whether the simulator finds it.')
  .option('--seeds <number>', 'seeds to try for each', wholeNumber(1), 2000)
  .option('--judge <text>', 'the simulator with this in its path', '')
  .option('--only <text>', 'mutations with this in their name', '')
  .allowExcessArguments(false)

interface Options {
  readonly seeds: number
  readonly judge: string
  readonly only: string
}

command.action(async ({ seeds, judge, only }: Options) => {
  const table = new Table({
    head: ['rule that is broken', 'found by seed'],
    style: { head: [], border: [] },
  })
  for (const one of JUDGES.filter(({ main, scenario = '' }) =>
    `${main} ${scenario}`.includes(judge),
  )) {
    for (const mutation of one.mutations.filter(({ name }) => name.includes(only))) {
      const found = await seedsToFind(one, mutation, seeds)
      console.log(`${mutation.name}: ${found ?? `not found in ${seeds} seeds`}`)
      table.push([mutation.name, found ?? `not in ${seeds}`])
      if (found === undefined) process.exitCode = 1
    }
  }
  await rm(MUTANTS, { recursive: true, force: true })
  console.log(table.toString())
})
await command.parseAsync()

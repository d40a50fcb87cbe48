// npm test: every test file in a process of its own, longest first, in two queues at once.
//
//   computing   as many files at a time as processors    sim/replication   sim/storage   sim/cluster ... wire/
//   waiting     half as many, one at least               torture/replicated   cluster/local   docs/cluster ...
//
// Most tests compute from beginning to end, those in virtual time for minutes. Others start real brokers, kill them and wait
// for others to notice, and leave processors idle meanwhile. In a single queue, and in the order of their names, waiting ones
// would run beside waiting ones, and simulations beside simulations. WAITING has as many of them as take as long, one after
// another, as all the rest.

import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'

const ROOT = import.meta.dirname
const HANGS_MS = 1_800_000

const WAITING = ['cluster/local', 'cluster/partition', 'docs/', 'torture/replicated/replicated']

/** What takes more than 40 s. Begun last, one of these would run on alone. */
const LONGEST = [
  'sim/replication',
  'sim/storage',
  'sim/cluster',
  'torture/replicated/replicated',
  'sim/membership',
  'cluster/local',
  'docs/cluster',
  'cluster/partition',
  'torture/metadata/metadata',
  'cluster/replication',
  'sim/week',
].map((name) => `${name}.test.js`)

/** What each run of a queue says at its end: `tests 24`. */
const TOTAL = /^(\w+) ([\d.]+)$/

const report = new spec()
const totals = new Map<string, number>()

async function runAll(files: readonly string[], concurrency: number): Promise<void> {
  const paths = files.map((file) => join(ROOT, file))
  // The report takes one test after another: what belongs to one is told at its end, in one go.
  let untold: TestEvent[] = []
  for await (const event of run({ files: paths, concurrency, timeout: HANGS_MS })) {
    const total = event.type === 'test:diagnostic' && event.data.file === undefined
    const [, name, number] = (total && TOTAL.exec(event.data.message)) || []
    if (name === undefined) untold.push(event)
    else if (name !== 'duration_ms') totals.set(name, (totals.get(name) ?? 0) + Number(number))
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    if (event.type === 'test:fail' && !event.data.todo) process.exitCode = 1
    if (event.data.nesting > 0) continue
    for (const each of untold) report.write(each)
    untold = []
  }
  for (const each of untold) report.write(each)
}

const found = (readdirSync(ROOT, { recursive: true }) as string[])
  .filter((file) => file.endsWith('.test.js'))
  .sort()
const missing = LONGEST.filter((file) => !found.includes(file))
if (missing.length > 0)
  throw new Error(`${missing.join()} is not in ${relative('.', ROOT)}: mend LONGEST`)
const files = [...LONGEST, ...found.filter((file) => !LONGEST.includes(file))]
const waits = (file: string): boolean => WAITING.some((folder) => file.startsWith(folder))

report.pipe(process.stdout)
const processors = availableParallelism()
await Promise.all([
  runAll(
    files.filter((file) => !waits(file)),
    processors,
  ),
  runAll(files.filter(waits), Math.max(1, Math.floor(processors / 2))),
])
for (const [name, number] of totals) {
  report.write({ type: 'test:diagnostic', data: { nesting: 0, message: `${name} ${number}` } })
}
report.end()

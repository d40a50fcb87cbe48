// How long run_cluster.sh waits, and what it says meanwhile: with programs in the place of the broker and eg-cli that are as slow,
// or as stuck, as a test wants them.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

/** What the script says; here as many seconds as make a test short. */
const LIMITS = [
  ['ready_within_s=60', 'ready_within_s=2'],
  ['settled_within_s=120', 'settled_within_s=1'],
] as const

/** HOW: ready; slow: says something new each half second, for 5 s; stuck: says the same for ever. */
const SERVER = `
const { argv, env } = process
const began = Date.now()
require('node:http').createServer((_, answer) => {
  const tookMs = Date.now() - began
  const ready = env.HOW === 'ready' || (env.HOW === 'slow' && tookMs > 5000)
  answer.writeHead(ready ? 200 : 503).end(env.HOW === 'slow' ? 'step ' + Math.floor(tookMs / 500) : 'thinking')
}).listen(Number(argv[argv.indexOf('--http-port') + 1]), '127.0.0.1')
`
/** Has settled when it was waited for so often as SETTLES says. Until then it lacks something else each time, or LACKS. */
const CLI = `
const { readFileSync, writeFileSync } = require('node:fs')
const file = __dirname + '/waited'
let waited = 0
try { waited = Number(readFileSync(file, 'utf8')) } catch {}
if (process.argv.includes('--json')) console.log(JSON.stringify({ unsettled: [process.env.LACKS || 'step ' + waited] }))
if (process.argv.includes('--wait')) {
  writeFileSync(file, String(++waited))
  process.exitCode = waited < Number(process.env.SETTLES) ? 1 : 0
}
`

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

let dir = ''
let port = 0

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'eastguard-run-cluster-'))
  port = await freePort()
  let text = await readFile('run_cluster.sh', 'utf8')
  for (const [usual, short] of LIMITS) {
    assert.ok(text.includes(usual), `the script has no ${usual}`)
    text = text.replace(usual, short)
  }
  await writeFile(join(dir, 'run_cluster.sh'), text)
  await cp('scripts', join(dir, 'scripts'), { recursive: true })
  await writeFile(join(dir, 'package.json'), '{ "scripts": { "build": "true" } }')
  await writeFile(join(dir, 'package-lock.json'), '{}')
  await mkdir(join(dir, 'node_modules'))
  await writeFile(join(dir, 'node_modules', '.package-lock.json'), '{}')
  const programs = join(dir, 'build', 'src', 'cli')
  await mkdir(programs, { recursive: true })
  await writeFile(join(programs, 'eastguard.js'), SERVER)
  await writeFile(join(programs, 'eg-cli.js'), CLI)
})

after(async () => {
  await script('clean')
  await rm(dir, { recursive: true, force: true })
})

/** The first of a row; that the others are free is likely. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      const found = typeof address === 'object' && address !== null ? address.port : 0
      // Below those that the system gives to others meanwhile.
      server.close(() => resolve(10_000 + (found % 15_000)))
    })
  })
}

function script(words: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const options = {
      env: {
        ...process.env,
        EASTGUARD_CLIENT_PORT: String(port),
        EASTGUARD_CLUSTER_PORT: String(port + 1),
        EASTGUARD_DATA_PORT: String(port + 2),
        EASTGUARD_HTTP_PORT: String(port + 3),
        ...env,
      },
    }
    const all = [join(dir, 'run_cluster.sh'), ...words.split(' ')]
    const child = execFile('bash', all, options, (_, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    )
  })
}

test('a broker that says how far it is has as long as it needs, and what it waits for is told', async () => {
  const slow = await script('start 1', { HOW: 'slow' })
  assert.equal(slow.code, 0, slow.out + slow.err)
  assert.match(slow.out, /broker 1 is not ready yet: step \d+\n[\s\S]*broker 1 is ready on/)
  await script('clean')
})

test('a broker that says nothing new is given up', async () => {
  const stuck = await script('start 1', { HOW: 'stuck' })
  assert.equal(stuck.code, 1, stuck.out + stuck.err)
  assert.match(stuck.err, /not ready, and for 2 s it was at the same \(thinking\)/)
  await script('clean')
})

test('a cluster is waited for as long as what it lacks changes', async () => {
  const later = await script('start', { HOW: 'ready', SETTLES: '3' })
  assert.equal(later.code, 0, later.out + later.err)
  assert.match(later.out, /What to type next/)
  await script('clean')
  await rm(join(dir, 'build', 'src', 'cli', 'waited'))
  const never = await script('start', { HOW: 'ready', SETTLES: '9', LACKS: 'a broker' })
  assert.equal(never.code, 1, never.out + never.err)
  assert.doesNotMatch(never.out, /What to type next/)
  await script('clean')
})

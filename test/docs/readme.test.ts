// The README's program runs as it stands there, against a real broker, and its types check.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { spawnBroker } from '../support/broker-process.ts'

const run = promisify(execFile)

async function snippet(): Promise<string> {
  const readme = await readFile('README.md', 'utf8')
  const found = /```ts\n([\s\S]*?)```/.exec(readme)?.[1]
  assert.ok(found !== undefined, 'the README has no program')
  return found
}

// In a folder of the package, so that 'eastguard' means this package, as it does for those who installed it.
async function inPackage(name: string, text: string): Promise<string> {
  const path = join('build', `${process.pid}-${name}`)
  await writeFile(path, text)
  return path
}

test("the README's program stores a record and reads it back", async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'eastguard-readme-'))
  const broker = await spawnBroker({ dataDir })
  t.after(async () => {
    broker.child.kill('SIGTERM')
    await broker.exited
    await rm(dataDir, { recursive: true, force: true })
  })
  await broker.ready()
  const text = (await snippet()).replace('127.0.0.1:2921', `127.0.0.1:${broker.port}`)
  const path = await inPackage('readme.mjs', text)
  t.after(() => rm(path, { force: true }))
  const { stdout } = await run(process.execPath, [path])
  assert.match(stdout, /^stored in partition \d at offset 0\n\d:0 Hello!\n$/)
})

test("the README's program has the types that it seems to have", async (t) => {
  const path = await inPackage('readme.mts', await snippet())
  t.after(() => rm(path, { force: true }))
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--ignoreConfig']
  const target = ['--module', 'nodenext', '--target', 'es2023', '--lib', 'es2023,esnext.disposable']
  const tsc = join('node_modules', 'typescript', 'bin', 'tsc')
  await run(process.execPath, [tsc, ...flags, ...target, '--types', 'node', path])
})

// Documentation that cannot rot: pages made from code equal what the code makes, every link leads somewhere, every
// invariant is held somewhere. `UPDATE_DOCS=1 npm test` rewrites the made pages; the diff is then reviewed.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { CONFIG_KEYS, camelKey, keySpec } from '../../src/app/config/key.ts'
import { configReference } from '../../src/app/config/reference.ts'
import { ERRORS, type ErrorKind } from '../../src/base/errors.ts'
import { POLICY_KEYS } from '../../src/model/policy-keys.ts'

const PAGES: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]

function sameAsMade(path: string, made: string): void {
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(path, made)
  assert.equal(readFileSync(path, 'utf8'), made, `${path} is out of date: UPDATE_DOCS=1 npm test`)
}

test('the configuration page is what the keys say', () => {
  sameAsMade('docs/reference/config.md', configReference())
})

test('every key has an effect, or says that clustering will give it one', () => {
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('keys.ts'))
    .map((name) => readFileSync(join('src', name), 'utf8'))
    .join('\n')
  const idle = CONFIG_KEYS.filter((key) => {
    if (keySpec(key).what.endsWith('Used by clustering.')) return false
    return !new RegExp(`\\bconfig\\.${camelKey(key)}\\b`).test(sources)
  })
  assert.deepEqual(idle, [])
})

test('every key that can be raised says what that costs, and lowering it too', () => {
  const silent = CONFIG_KEYS.filter((key) => {
    const { kind, raising, lowering } = keySpec(key)
    const tunable = kind === 'integer' || kind === 'size' || kind === 'duration'
    return tunable && (raising === undefined || lowering === undefined)
  })
  assert.deepEqual(silent, [])
})

test('the page of errors is what the catalogue says', () => {
  const rows = Object.entries(ERRORS as Record<string, ErrorKind>).map(
    ([code, { number, retriable, meaning, hint }]) =>
      `| \`${code}\` | ${number} | ${retriable ? 'yes' : 'no'} | ${meaning} | ${hint} |`,
  )
  sameAsMade(
    'docs/reference/errors.md',
    `# Errors

<!-- Made from src/base/errors.ts by test/tidy/docs.test.ts. -->

Every error has a stable code, a number (that of the native protocol), a message that says what happened and to what, and a hint. *Retriable* means that the
same request may succeed later; the SDK retries those by itself until its deadline. Numbers from 100 are the client's own and never come from a broker;
numbers from 120 end a broker's start or its life.

| code | number | retriable | meaning | what to do |
|---|---|---|---|---|
${rows.join('\n')}
`,
  )
})

test('error numbers are used once', () => {
  const numbers = Object.values(ERRORS as Record<string, ErrorKind>).map(({ number }) => number)
  assert.equal(new Set(numbers).size, numbers.length)
})

test('the page of topics names every policy', () => {
  const page = readFileSync('docs/reference/topics.md', 'utf8')
  const missing = POLICY_KEYS.filter((name) => !page.includes(`| \`${name}\` |`))
  assert.deepEqual(missing, [])
})

test('every link leads somewhere', () => {
  const broken: string[] = []
  for (const page of PAGES) {
    const text = readFileSync(page, 'utf8').replace(/```[\s\S]*?```/g, '')
    for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? page : join(dirname(page), path)
      if (!existsSync(file)) broken.push(`${page}: ${target}`)
      else if (anchor !== undefined && !anchorsOf(file).has(anchor)) {
        broken.push(`${page}: ${target} (no such heading)`)
      }
    }
  }
  assert.deepEqual(broken, [])
})

function anchorsOf(file: string): Set<string> {
  const headings = readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)
  return new Set(
    [...headings].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  )
}

test('documents that code names exist', () => {
  const missing: string[] = []
  for (const name of readdirSync('src', { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue
    const path = join('src', name)
    for (const [document] of readFileSync(path, 'utf8').matchAll(/\bdocs\/[\w/-]+\.md/g)) {
      if (!existsSync(document)) missing.push(`${path}: ${document}`)
    }
  }
  assert.deepEqual(missing, [])
})

test('every invariant is numbered, and held by code that names it or by an area to come', () => {
  const page = readFileSync('docs/internals/protocols.md', 'utf8')
  const section = page.slice(page.indexOf('## 11. Invariants'))
  const numbers = [...section.matchAll(/^(\d+)\. /gm)].map(([, n]) => Number(n))
  assert.deepEqual(
    numbers,
    numbers.map((_, i) => i + 1),
  )
  const held = new Map(
    [...section.matchAll(/^\| I(\d+) \| (.+) \|$/gm)].map(([, n, by = '']) => [Number(n), by]),
  )
  for (const n of numbers) {
    const by = held.get(n)
    assert.ok(by !== undefined, `invariant ${n} has no row`)
    const paths = [...by.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path)
    if (paths.length === 0) assert.match(by, /^comes with \w+/, `invariant ${n}`)
    for (const path of paths) {
      assert.ok(statSync(path).isFile(), path)
      assert.ok(readFileSync(path, 'utf8').includes(`[I${n}]`), `${path} does not name [I${n}]`)
    }
  }
})

test('the layer table of the architecture page is the one that is enforced', () => {
  const page = readFileSync('docs/internals/architecture.md', 'utf8')
  const enforced = readFileSync('test/tidy/layers.test.ts', 'utf8')
  for (const [, layer = '', imports = ''] of enforced.matchAll(/^ {2}'?([\w.]+)'?: \[(.*)\],$/gm)) {
    const row = page
      .split('\n')
      .find(
        (line) =>
          line.startsWith('|') && new RegExp(`\`${layer}/?\``).test(line.split('|')[1] ?? ''),
      )
    assert.ok(row !== undefined, `${layer} has no row`)
    const written = row.split('|').at(-2) ?? ''
    if (written.includes('all but')) continue
    const names = [...imports.matchAll(/'([\w.]+)'/g)].map(([, name]) => name)
    const said = written
      .replace(/\(.*?\)/g, '')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== 'nothing')
    assert.deepEqual(said, names, `row of ${layer}`)
  }
})

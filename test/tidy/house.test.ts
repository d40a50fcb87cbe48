// House rules that no linter knows: size, words, the map at every door, and a second line of defence for the fence
// round time, chance and IO.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { test } from 'node:test'

const LINES_MAX = 500

function filesUnder(root: string, extension: RegExp): string[] {
  if (!existsSync(root)) return []
  return (readdirSync(root, { recursive: true }) as string[])
    .filter((name) => extension.test(name))
    .map((name) => join(root, name))
}

const SOURCES: readonly string[] = ['src', 'test', 'bench'].flatMap((root) =>
  filesUnder(root, /\.ts$/),
)

test(`no file has more than ${LINES_MAX} lines`, () => {
  const long = SOURCES.map((path) => ({
    path,
    lines: readFileSync(path, 'utf8').split('\n').length,
  }))
  assert.deepEqual(
    long.filter(({ lines }) => lines > LINES_MAX),
    [],
  )
})

test('every folder of src has a README', () => {
  const missing = readdirSync('src', { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !existsSync(join('src', entry.name, 'README.md')))
    .map((entry) => entry.name)
  assert.deepEqual(missing, [])
})

test('nothing is left for later in the tree', () => {
  // Put together here, so that this file does not find itself.
  const words = ['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'place' + 'holder', 'for ' + 'now,']
  const pattern = new RegExp(`\\b(${words.join('|')})`)
  const docs = [...filesUnder('docs', /\.md$/), 'README.md', 'CONTRIBUTING.md', 'CHANGELOG.md']
  const scripts = ['Makefile', 'run_cluster.sh', 'eg-cli', '.ci/run']
  const found = [...SOURCES, ...docs, ...scripts].flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim()}`] : [])),
  )
  assert.deepEqual(found, [])
})

test('no test is skipped or run alone', () => {
  const pattern = new RegExp(`\\b(test|it|describe)\\.(${['sk' + 'ip', 'on' + 'ly'].join('|')})\\b`)
  const found = filesUnder('test', /\.ts$/).filter((path) =>
    pattern.test(readFileSync(path, 'utf8')),
  )
  assert.deepEqual(found, [])
})

/** The folders that may touch the world; all others get it through ports. */
const OUTSIDE = new Set(['io', 'app', 'cli'])
const WORLD: readonly RegExp[] = [
  /(?<![.\w'"`])Date\s*[.(]|new Date\b/,
  /(?<![.\w])performance\./,
  /(?<![.\w])(setTimeout|setInterval|setImmediate)\(/,
  /\bMath\.random\b/,
  /\b(randomBytes|randomUUID|randomInt|randomFillSync|getRandomValues)\b/,
  /(?<![./\w])process\.(?!\s)/,
  /from 'node:(fs|net|dgram|tls|http|https|http2|os|worker_threads|child_process|timers|process|perf_hooks)/,
  /\b(gzip|gunzip|deflate|inflate|brotliCompress|zstdCompress|zstdDecompress|pbkdf2|scrypt)\(/,
]

test('only io, app and cli touch time, chance, processes, disk and network', () => {
  const faults: string[] = []
  for (const path of filesUnder('src', /\.ts$/)) {
    const [, layer = ''] = path.split(sep)
    if (OUTSIDE.has(layer)) continue
    const lines = readFileSync(path, 'utf8').split('\n')
    lines.forEach((line, i) => {
      const code = line.replace(/^\s*(\/\/|\*|\/\*).*|\/\/ .*$/, '')
      if (WORLD.some((pattern) => pattern.test(code)))
        faults.push(`${path}:${i + 1}: ${line.trim()}`)
    })
  }
  assert.deepEqual(faults, [])
})

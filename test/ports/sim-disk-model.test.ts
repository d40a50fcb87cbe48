// Whatever happens to the simulated disk, what was synced, bytes and names, is there after any crash. The model beside it
// is the plainest that can be: of each file every content that it had since it was certain, of each name every file that
// it stood for. After a power cut each byte must come from one of the contents and each name stand for one of the files,
// and then what is found is certain.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Prng, prng } from '../../src/base/prng.ts'
import { type Disk, DiskError, type DiskFile } from '../../src/ports/disk.ts'
import { type Crash, type SimDisk, simDisk } from '../../src/sim/ports/disk.ts'

const PAGE = 4096
const BYTES_MAX = 3 * PAGE
const DIRS = ['.', 'd'] as const
const PATHS = ['a', 'b', 'd/a', 'd/b'] as const
const STEPS = 60

type Path = (typeof PATHS)[number]

interface TrueFile {
  /** In the first bytes of its content, so that it is known again. */
  readonly id: number
  /** Oldest first; the last is what reads show. */
  contents: Uint8Array[]
  /** A sync has failed: no later one can be trusted, nor what reads show. */
  doubtful: boolean
}

class Life {
  readonly sim: SimDisk
  private readonly chance: Prng
  private disk: Disk
  private readonly files: TrueFile[] = []
  private readonly now = new Map<Path, TrueFile>()
  /** What a name may stand for after a power cut; absent: nothing but what it stands for now. */
  private readonly may = new Map<Path, Set<TrueFile | undefined>>()

  constructor(seed: number) {
    this.sim = simDisk({ seed })
    this.chance = prng(seed)
    this.disk = this.sim.mount()
  }

  async run(): Promise<void> {
    await this.disk.makeDir('d')
    await this.disk.syncDir('.')
    for (let step = 0; step < STEPS; step++) {
      const path = PATHS[this.chance.below(PATHS.length)] ?? 'a'
      const file = this.now.get(path)
      const action = this.chance.below(20)
      if (action === 0) this.crash()
      else if (action === 1) await this.syncDir(DIRS[this.chance.below(DIRS.length)] ?? '.')
      else if (file === undefined) await this.create(path)
      else if (action === 2) await this.remove(path)
      else if (action <= 6) await this.rename(path, file)
      else await this.change(path, file, action)
    }
    this.crash()
  }

  private touch(path: Path, file: TrueFile | undefined): void {
    const before = this.now.get(path)
    this.may.set(path, (this.may.get(path) ?? new Set([before])).add(file))
    if (file === undefined) this.now.delete(path)
    else this.now.set(path, file)
  }

  private async create(path: Path): Promise<void> {
    const id = this.files.length + 1
    const made: TrueFile = { id, contents: [Uint8Array.of(id)], doubtful: false }
    this.files.push(made)
    const file = await this.disk.open(path, { mode: 'create-new' })
    this.touch(path, made)
    await file.write([Uint8Array.of(id)], 0)
    await file.sync()
    await file.close()
  }

  private async remove(path: Path): Promise<void> {
    await this.disk.remove(path)
    this.touch(path, undefined)
  }

  private async rename(from: Path, file: TrueFile): Promise<void> {
    const to = PATHS[this.chance.below(PATHS.length)] ?? 'a'
    if (to === from) return
    await this.disk.rename(from, to)
    this.touch(from, undefined)
    this.touch(to, file)
  }

  private async syncDir(dir: (typeof DIRS)[number]): Promise<void> {
    await this.disk.syncDir(dir)
    for (const path of PATHS) {
      if ((dir === 'd') === path.startsWith('d/')) this.may.delete(path)
    }
  }

  private async change(path: Path, truth: TrueFile, action: number): Promise<void> {
    const durable = this.chance.below(3) === 0
    const file = await this.disk.open(path, { mode: 'write', durable })
    if (action <= 14) {
      const bytes = this.chance.bytes(1 + this.chance.below(this.chance.below(2) === 0 ? 9 : PAGE))
      const position = 1 + this.chance.below(BYTES_MAX - PAGE)
      if (this.chance.below(12) === 0) return this.crashWriting(file, truth, bytes, position)
      await file.write([bytes], position)
      truth.contents.push(written(last(truth), bytes, position))
      if (durable) truth.contents = truth.contents.map((one) => written(one, bytes, position))
    } else if (action === 15) {
      const length = 1 + this.chance.below(BYTES_MAX)
      await file.truncate(length)
      truth.contents.push(resized(last(truth), length))
    } else if (action === 16) {
      this.sim.fail({ operation: 'sync', fault: 'io' })
      await assert.rejects(file.sync(), DiskError)
      truth.doubtful = true
    } else {
      await file.sync()
      if (!truth.doubtful) truth.contents = truth.contents.slice(-1)
    }
    await file.close()
  }

  private crashWriting(file: DiskFile, truth: TrueFile, bytes: Uint8Array, position: number): void {
    truth.contents.push(written(last(truth), bytes, position))
    void file.write([bytes], position)
    this.crash()
  }

  /** What is told to be certain is what the worst power cut leaves of a copy. */
  private checkDurable(): void {
    const copy = simDisk({ image: this.sim.snapshot() })
    copy.crash({ keepUnsynced: false })
    const left = copy.paths().map((path) => [path, copy.bytesOf(path)])
    assert.deepEqual(new Map(this.sim.durable([''])), new Map(left as [string, Uint8Array][]))
  }

  private crash(): void {
    this.checkDurable()
    const how = this.chance.below(3)
    const crash: Crash = { keepUnsynced: how === 0 ? true : how === 1 ? false : 'some' }
    this.sim.crash(crash)
    this.disk = this.sim.mount()
    const found = new Map<Path, TrueFile>()
    for (const path of PATHS) {
      const file = this.found(path)
      const allowed = this.may.get(path) ?? new Set([this.now.get(path)])
      if (how === 0) assert.equal(file, this.now.get(path), `${path} after a kill`)
      else assert.ok(allowed.has(file), `${path} is ${file?.id}`)
      if (file === undefined) continue
      assert.ok(![...found.values()].includes(file), `file ${file.id} is in two places`)
      found.set(path, file)
      const content = this.sim.bytesOf(path)
      checkContent(content, file, path)
      file.contents = how === 0 ? [...file.contents, content] : [content]
      if (how > 0) file.doubtful = false
    }
    if (how === 0) return
    this.may.clear()
    this.now.clear()
    for (const [path, file] of found) this.now.set(path, file)
  }

  private found(path: Path): TrueFile | undefined {
    if (!this.sim.paths().includes(path)) return undefined
    const [id = 0] = this.sim.bytesOf(path)
    const file = this.files[id - 1]
    assert.ok(file !== undefined, `${path} has lost its first byte, which was synced`)
    return file
  }
}

function last({ contents }: TrueFile): Uint8Array {
  return contents.at(-1) ?? new Uint8Array(0)
}

function written(content: Uint8Array, bytes: Uint8Array, position: number): Uint8Array {
  const after = resized(content, Math.max(content.length, position + bytes.length))
  after.set(bytes, position)
  return after
}

function resized(content: Uint8Array, length: number): Uint8Array {
  const after = new Uint8Array(length)
  after.set(content.subarray(0, length))
  return after
}

function checkContent(content: Uint8Array, { contents, id }: TrueFile, path: string): void {
  const lengths = contents.map((one) => one.length)
  assert.ok(content.length >= Math.min(...lengths), `${path} (${id}) is not too short`)
  assert.ok(content.length <= Math.max(...lengths), `${path} (${id}) is not too long`)
  for (let at = 0; at < content.length; at++) {
    const byte = content[at]
    if (!contents.some((one) => (one[at] ?? 0) === byte))
      assert.fail(`byte ${at} of ${path} (${id}) is ${byte}, which it never was`)
  }
}

test('whatever happens, what was synced is there after any crash, and nothing that never was', async () => {
  for (let seed = 1; seed <= 400; seed++) {
    try {
      await new Life(seed).run()
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error })
    }
  }
})

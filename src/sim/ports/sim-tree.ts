// Directories, as the operating system sees them and as they are on the platter.
//
//   current   what open and list see
//   durable   what is left after a power cut
//   pending   changes between the two, in order; each is atomic (a rename is one change in two places)
//
// `syncDir` makes durable the changes of its directory and, first, earlier changes of the names that those touch. Other
// directories' changes stay pending: code that syncs the wrong directory must be seen to lose files.

import type { Prng } from '../../base/prng.ts'
import { DiskError } from '../../ports/disk.ts'
import type { SimFile } from './sim-file.ts'

export interface SimDir {
  readonly kind: 'directory'
  readonly current: Map<string, Node>
  readonly durable: Map<string, Node>
}

export type Node = SimFile | SimDir

interface Change {
  readonly dir: SimDir
  readonly name: string
  /** Absent: the name goes. */
  readonly node: Node | undefined
}

export interface Place {
  readonly dir: SimDir
  readonly name: string
}

export class SimTree {
  private readonly root: SimDir = newDir()
  private pending: (readonly Change[])[] = []

  /** '.' is the root. */
  find(path: string): Node | undefined {
    let node: Node | undefined = this.root
    if (path === '.') return node
    for (const part of path.split('/')) {
      if (node?.kind !== 'directory') return undefined
      node = node.current.get(part)
    }
    return node
  }

  dir(path: string): SimDir {
    const node = this.find(path)
    if (node?.kind === 'directory') return node
    throw new DiskError('not-found', path, `the directory ${path} does not exist`)
  }

  /** Where the name of a path stands; its directory must exist. */
  place(path: string): Place {
    const slash = path.lastIndexOf('/')
    return { dir: this.dir(slash < 0 ? '.' : path.slice(0, slash)), name: path.slice(slash + 1) }
  }

  makeDir(path: string): void {
    if (path === '.') return
    let { root: dir } = this
    for (const part of path.split('/')) {
      const next = dir.current.get(part)
      if (next?.kind === 'file') throw new DiskError('exists', path, `${path} is a file`)
      if (next === undefined) {
        const made = newDir()
        this.change([{ dir, name: part, node: made }])
        dir = made
      } else {
        dir = next
      }
    }
  }

  change(changes: readonly Change[]): void {
    for (const { dir, name, node } of changes) set(dir.current, name, node)
    this.pending.push(changes)
  }

  syncDir(dir: SimDir): void {
    const names = new Map<SimDir, Set<string>>()
    const chosen = new Set<readonly Change[]>()
    for (const changes of [...this.pending].reverse()) {
      if (!changes.some((c) => c.dir === dir || names.get(c.dir)?.has(c.name) === true)) continue
      chosen.add(changes)
      for (const c of changes) names.set(c.dir, (names.get(c.dir) ?? new Set()).add(c.name))
    }
    this.pending = this.pending.filter((changes) => {
      if (!chosen.has(changes)) return true
      makeDurable(changes)
      return false
    })
  }

  /** With `chance`, any pending changes may have made it; without, none. */
  powerCut(chance: Prng | undefined): void {
    for (const changes of this.pending) {
      if (chance !== undefined && chance.below(2) === 0) makeDurable(changes)
    }
    this.pending = []
    for (const node of walk(this.root, 'durable')) {
      if (node.kind === 'file') node.powerCut(chance)
      else {
        node.current.clear()
        for (const [name, child] of node.durable) node.current.set(name, child)
      }
    }
  }
}

function makeDurable(changes: readonly Change[]): void {
  for (const { dir, name, node } of changes) set(dir.durable, name, node)
}

function set(names: Map<string, Node>, name: string, node: Node | undefined): void {
  if (node === undefined) names.delete(name)
  else names.set(name, node)
}

function newDir(): SimDir {
  return { kind: 'directory', current: new Map(), durable: new Map() }
}

/** The node and everything below it, a directory after its children. */
function* walk(node: Node, names: 'current' | 'durable'): Generator<Node> {
  if (node.kind === 'directory') {
    for (const child of node[names].values()) yield* walk(child, names)
  }
  yield node
}

/** The bytes of all files below. */
export function bytesBelow(node: Node): number {
  let bytes = 0
  for (const below of walk(node, 'current')) if (below.kind === 'file') bytes += below.size
  return bytes
}

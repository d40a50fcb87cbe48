// Directories, as the operating system sees them and as they are on the platter.
//
//   current   what open and list see
//   durable   what is left after a power cut
//   pending   steps between the two, in order; each is atomic (a rename is one step that changes two names)
//
// `syncDir` makes durable the steps of its directory and, first, earlier steps of the names that those touch. Other
// directories' steps stay pending: code that syncs the wrong directory must be seen to lose files.
//
// A power cut keeps any of the pending steps, in no order but this: of two steps that touch one name the second never
// survives without the first, and a directory is gone only when all in it is. So files overtake one another, but nothing
// is in two places at once.

import { DiskError } from '../../ports/disk.ts'
import { type Luck, SimFile } from './sim-file.ts'

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

export interface Step {
  readonly changes: readonly Change[]
  /** The directory that goes, which must be empty by then. */
  readonly emptied?: SimDir
}

export interface Place {
  readonly dir: SimDir
  readonly name: string
}

/** From so many pending steps on it is looked for those that can have no effect any more. */
const PENDING_MAX = 256

export class SimTree {
  private root: SimDir = newDir()
  private pending: Step[] = []

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

  /** The path and whatever of its parents is missing, the topmost first. */
  making(path: string): Step[] {
    const steps: Step[] = []
    let { root: dir } = this
    for (const name of path === '.' ? [] : path.split('/')) {
      const next = dir.current.get(name)
      if (next?.kind === 'file') throw new DiskError('exists', path, `${path} is a file`)
      const made = next ?? newDir()
      if (next === undefined) steps.push({ changes: [{ dir, name, node: made }] })
      dir = made
    }
    return steps
  }

  renaming(from: string, to: string): Step[] {
    const source = this.place(from)
    const node = source.dir.current.get(source.name)
    if (node === undefined)
      throw new DiskError('not-found', from, `cannot rename ${from}: it does not exist`)
    const target = this.place(to)
    const replaced = target.dir.current.get(target.name)
    const filled = replaced?.kind === 'directory' && replaced.current.size > 0
    if (replaced !== undefined && (filled || replaced.kind !== node.kind))
      throw new DiskError('exists', to, `cannot rename ${from} to ${to}: it exists already`)
    const changes = [
      { ...source, node: undefined },
      { ...target, node },
    ]
    return [{ changes }]
  }

  /** A directory goes after all that is in it, name by name. */
  removing(path: string): Step[] {
    return this.find(path) === undefined ? [] : removal(this.place(path))
  }

  take(steps: readonly Step[]): void {
    for (const step of steps) {
      for (const { dir, name, node } of step.changes) set(dir.current, name, node)
      this.pending.push(step)
    }
  }

  syncDir(dir: SimDir): void {
    const names = new Names()
    const chosen = new Set<Step>()
    for (const step of [...this.pending].reverse()) {
      if (!step.changes.some((c) => c.dir === dir || names.has(c))) continue
      chosen.add(step)
      for (const change of step.changes) names.add(change)
    }
    this.pending = this.pending.filter((step) => {
      if (!chosen.has(step)) return true
      makeDurable(step)
      return false
    })
    if (this.pending.length > PENDING_MAX) this.forgetUnreachable()
  }

  /** Steps in directories that nothing leads to, now or after any power cut: nobody will ever sync those. */
  private forgetUnreachable(): void {
    const reachable = new Set<SimDir>()
    const reach = (node: Node | undefined): void => {
      if (node?.kind !== 'directory' || reachable.has(node)) return
      reachable.add(node)
      for (const names of [node.current, node.durable])
        for (const child of names.values()) reach(child)
    }
    reach(this.root)
    for (let before = 0; before < reachable.size; ) {
      before = reachable.size
      for (const { changes } of this.pending) {
        if (!changes.some(({ dir }) => reachable.has(dir))) continue
        for (const { node } of changes) reach(node)
      }
    }
    this.pending = this.pending.filter(({ changes }) =>
      changes.some(({ dir }) => reachable.has(dir)),
    )
  }

  /** Without luck nothing survives that was not synced. */
  powerCut(luck: Luck | undefined): void {
    const undone = new Names()
    for (const step of this.pending) {
      const held =
        step.changes.some((change) => undone.has(change)) ||
        (step.emptied !== undefined && undone.hasAnyOf(step.emptied))
      if (!held && luck !== undefined && luck.chance.float() < luck.share) makeDurable(step)
      else for (const change of step.changes) undone.add(change)
    }
    this.pending = []
    for (const [, node] of walk(this.root, 'durable')) {
      if (node.kind === 'file') node.powerCut(luck)
      else {
        node.current.clear()
        for (const [name, child] of node.durable) node.current.set(name, child)
      }
    }
  }

  /** Everything below, parents after their children. */
  nodes(): Iterable<readonly [path: string, node: Node]> {
    return walk(this.root, 'current')
  }

  /** What a power cut now would leave, if nothing were kept but what is certain. */
  durableNodes(): Iterable<readonly [path: string, node: Node]> {
    return walk(this.root, 'durable')
  }

  copy(): SimTree {
    const copies = new Map<Node, Node>()
    const copyOf = (node: Node): Node => {
      const known = copies.get(node)
      if (known !== undefined) return known
      if (node.kind === 'directory') return copyOfDir(node)
      const file = node.copy()
      copies.set(node, file)
      return file
    }
    const copyOfDir = (dir: SimDir): SimDir => {
      const known = copies.get(dir)
      if (known?.kind === 'directory') return known
      const copy = newDir()
      copies.set(dir, copy)
      for (const names of ['current', 'durable'] as const) {
        for (const [name, node] of dir[names]) copy[names].set(name, copyOf(node))
      }
      return copy
    }
    const tree = new SimTree()
    tree.root = copyOfDir(this.root)
    tree.pending = this.pending.map(({ changes, emptied }) => ({
      changes: changes.map(({ dir, name, node }) => ({
        dir: copyOfDir(dir),
        name,
        node: node === undefined ? undefined : copyOf(node),
      })),
      ...(emptied === undefined ? {} : { emptied: copyOfDir(emptied) }),
    }))
    return tree
  }
}

/** Names in their directories. */
class Names {
  private readonly names = new Map<SimDir, Set<string>>()

  add({ dir, name }: Place): void {
    const known = this.names.get(dir)
    if (known === undefined) this.names.set(dir, new Set([name]))
    else known.add(name)
  }

  has({ dir, name }: Place): boolean {
    return this.names.get(dir)?.has(name) === true
  }

  hasAnyOf(dir: SimDir): boolean {
    return this.names.has(dir)
  }
}

function removal(place: Place): Step[] {
  const node = place.dir.current.get(place.name)
  const changes = [{ ...place, node: undefined }]
  if (node?.kind !== 'directory') return [{ changes }]
  const inside = [...node.current.keys()].flatMap((name) => removal({ dir: node, name }))
  return [...inside, { changes, emptied: node }]
}

function makeDurable({ changes }: Step): void {
  for (const { dir, name, node } of changes) set(dir.durable, name, node)
}

function set(names: Map<string, Node>, name: string, node: Node | undefined): void {
  if (node === undefined) names.delete(name)
  else names.set(name, node)
}

function newDir(): SimDir {
  return { kind: 'directory', current: new Map(), durable: new Map() }
}

function* walk(
  dir: SimDir,
  names: 'current' | 'durable',
  prefix: string = '',
): Generator<readonly [path: string, node: Node]> {
  for (const [name, node] of dir[names]) {
    if (node.kind === 'directory') yield* walk(node, names, `${prefix}${name}/`)
    else yield [`${prefix}${name}`, node]
  }
  yield [prefix === '' ? '.' : prefix.slice(0, -1), dir]
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ShardCopy } from '../../src/broker/shards/copy.ts'
import type { ShardView } from '../../src/broker/shards/types.ts'
import { type NodeId, nodeId } from '../../src/model/ids.ts'
import type { Entry } from '../../src/model/raft.ts'
import { Copies, type Looked } from '../../src/sim/cluster/copies.ts'

const NODES = ['a', 'b'].map((digit) => nodeId(digit.repeat(32)))

interface Part {
  readonly count: 1
  readonly copy: ShardCopy
  view: () => ShardView | undefined
  copyOf: () => ShardCopy
  committed: (shard: number, from: number) => readonly Entry[]
}

function started(): Part {
  const watcher = { changed: () => {}, applied: () => {}, advanced: () => {} }
  const copy = new ShardCopy(0, watcher)
  return { count: 1, copy, view: () => undefined, copyOf: () => copy, committed: () => [] }
}

function viewOf(role: ShardView['role'], term: number, voters: readonly NodeId[]): () => ShardView {
  const members = { voters, learners: [] }
  return () => ({
    role,
    term,
    members,
    settled: true,
    leader: undefined,
    commit: 0,
    appliedIndex: 0,
  })
}

interface Rig {
  readonly parts: [Part, Part]
  readonly look: () => readonly string[]
}

/** Two brokers with one shard. */
function rig(): Rig {
  const parts: [Part, Part] = [started(), started()]
  const violations: string[] = []
  const machines: Looked[] = NODES.map((node, i) => ({
    host: `b${i + 1}`,
    nodeId: node,
    get shards() {
      return parts[i]
    },
  }))
  const watcher = { say: () => {}, violation: (what: string) => void violations.push(what) }
  const copies = new Copies(machines, watcher)
  const look = (): readonly string[] => {
    copies.look()
    return violations.splice(0)
  }
  return { parts, look }
}

test('copies that are at the same place must be the same, also when one has gone on', () => {
  const { parts, look } = rig()
  const [one, other] = parts
  one.copy.state.appliedIndex = 5
  assert.deepEqual(look(), [])
  one.copy.state.appliedIndex = 6
  one.copy.state.nextProducerId = 1000
  assert.deepEqual(look(), [])
  other.copy.state.appliedIndex = 5
  assert.deepEqual(look(), [])
  other.copy.state.appliedIndex = 6
  assert.match(look()[0] ?? '', /b2: its copy of shard 0 at 6 is not what another broker had/)
})

test('a copy never goes back while its broker runs, and a new start may begin behind', () => {
  const { parts, look } = rig()
  parts[0].copy.state.appliedIndex = 5
  assert.deepEqual(look(), [])
  parts[0] = started()
  parts[0].copy.state.appliedIndex = 4
  assert.deepEqual(look(), [])
  parts[0].copy.state.appliedIndex = 3
  assert.match(look()[0] ?? '', /goes back: 3, 4/)
})

test('a term has one leader, and who led others is in no older term again', () => {
  const { parts, look } = rig()
  const [one, other] = parts
  one.view = viewOf('leader', 4, NODES)
  other.view = viewOf('follower', 4, NODES)
  assert.deepEqual(look(), [])
  other.view = viewOf('leader', 4, NODES)
  assert.match(look()[0] ?? '', /b2 leads shard 0 in term 4, as another did/)
  other.view = () => undefined
  parts[0] = started()
  parts[0].view = viewOf('follower', 3, NODES)
  assert.match(look()[0] ?? '', /b1 is in term 3 of shard 0, after it led in 4/)
})

test('one that led alone may have been the only one who knew of it', () => {
  const { parts, look } = rig()
  parts[0].view = viewOf('leader', 4, NODES.slice(0, 1))
  assert.deepEqual(look(), [])
  parts[0].view = viewOf('follower', 3, NODES.slice(0, 1))
  assert.deepEqual(look(), [])
})

test('what has committed is the same everywhere, and no proposal is in two places', () => {
  const { parts, look } = rig()
  const [one, other] = parts
  const entry = (index: number, id: string): Entry => ({
    index,
    term: 1,
    payload: { kind: 'command', id, data: Uint8Array.of(1) },
  })
  const holds = (...entries: readonly Entry[]): Part['committed'] => {
    return (_, from) => entries.filter(({ index }) => index >= from)
  }
  one.committed = holds(entry(1, 'x'), entry(2, 'y'))
  other.committed = holds(entry(1, 'x'))
  assert.deepEqual(look(), [])
  other.committed = holds(entry(1, 'x'), entry(2, 'z'))
  assert.match(look()[0] ?? '', /b2 takes for committed in shard 0 at 2: command z/)
  one.committed = holds(entry(1, 'x'), entry(2, 'y'), entry(3, 'x'))
  assert.match(look()[0] ?? '', /proposal x was taken twice, at 1 and 3/)
})

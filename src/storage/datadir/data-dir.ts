// The data directory as a whole: one process at a time, one identity, and three places that must agree on it.
//
//   lock        held while the process lives
//   node.json   identity and boot counts
//   journal/    metadata         } each file header carries node id and boot count
//   wal/        entries          }
//
// A directory that was restored from a backup in part, or half wiped, must not vote or answer: it would deny what it
// once acknowledged. So each start writes its boot number to all three places before it sends anything that rests on them,
// and the next start compares them. The writes are not one, and a crash between them must not brick a good directory;
// node.json therefore says when a start began to write its number and when each of the others had it:
//
//                                                 node.json                 journal    wal
//                                       journalBoots walBoots starting
//   as the last start left it                6          6        6             6        6
//   1  openDataDir   starting is raised      6          6        7             6        6
//   2  the journal begins                    6          6        7             7        6    a crash in here leaves both
//   3  confirm       the journal has it      7          6        7             7        6    others at their boots or
//      from here on this node may vote                                                       above: good
//   4  the WAL begins                        7          6        7             7        7
//   5  confirm       the WAL has it          7          7        7             7        7
//
// Good is: journalBoots <= journal <= starting, walBoots <= wal <= starting. A restored part is below its boots; a restored
// node.json has a `starting` below the others. What was never confirmed has sent nothing, so that nothing is lost by coming
// back to it. In the first start of a directory boots are 0: only then may a part be missing.
//
// A whole directory that was restored agrees with itself, and only others can know that it is an older copy. So each start
// also draws an id, written with `starting`, and here is kept what starts of others were met (model/starts.ts); and, once one
// of them has said that this directory is an older copy of one that went on, that no start may act under its id any more.

import type { Address } from '../../base/address.ts'
import { assert } from '../../base/assert.ts'
import { equalBytes, fromHex, toHex } from '../../base/bytes.ts'
import { EastGuardError } from '../../base/errors.ts'
import { type NodeId, nodeId } from '../../model/ids.ts'
import {
  newestStart,
  START_ID_BYTES,
  type Start,
  type StartMemory,
  type Starts,
  withStart,
} from '../../model/starts.ts'
import { type Disk, DiskError, type DiskLock } from '../../ports/disk.ts'
import type { Random } from '../../ports/random.ts'
import { readLogIdentity } from '../wal/recover.ts'
import type { LogIdentity } from '../wal/types.ts'
import {
  NODE_FILE,
  type NodeCluster,
  type NodeRecord,
  readNodeFile,
  writeNodeFile,
} from './node-file.ts'
import { RecordWriter } from './record-writer.ts'

const LOCK_FILE = 'lock'
const ID_BYTES = 16
/** Nodes of which a start is remembered; beyond it those that were met longest ago are forgotten. */
const MET_MAX = 4096
/** Of whom one must be there at the next start. */
const PEERS_MAX = 64

export interface DataDirOptions {
  readonly disk: Disk
  readonly random: Random
  readonly displayName: string
  /** Where the metadata journal and the data WAL lie. */
  readonly journalDir: string
  readonly walDir: string
}

export interface DataDir extends StartMemory {
  readonly nodeId: NodeId
  /** Undefined before it has joined or founded one. */
  readonly cluster: NodeCluster | undefined
  /** Where others of the cluster were when this start began. */
  readonly peers: readonly Address[]
  /** Of this start. */
  readonly bootCount: number
  /** This one, and those before it. */
  readonly starts: Starts
  /** Nothing was here before this start. */
  readonly fresh: boolean
  /** What journal and WAL write into their files. */
  readonly identity: LogIdentity
  /** Durable when it resolves. A node belongs to one cluster for ever. */
  joined(cluster: NodeCluster): Promise<void>
  /** Where others of the cluster are. Durable when it resolves; when it rejects, it may be said again, and is tried again with whatever is written next. */
  keepPeers(peers: readonly Address[]): Promise<void>
  /** The part has begun under `identity`. To be awaited before anything is sent that rests on it; one after the other. */
  confirm(part: 'journal' | 'wal'): Promise<void>
  /** No later start acts under this node's id: `by` has met a later one than this directory knows. */
  refuse(by: NodeId): Promise<void>
  /** Lets another process in. */
  close(): Promise<void>
}

/** What a directory that was refused is told, now and at each later start. */
export function refusedAsOld(node: NodeId, by: NodeId): EastGuardError {
  return new EastGuardError(
    'DATA_DIR_MISMATCH',
    `this data directory is an older copy of node ${node}: broker ${by} has met a start of the node that is not in it. ` +
      'It may have forgotten what the node has promised to others, and does not act under its id',
    {
      detail: { node, by },
      hint: 'give the broker an empty data directory: it joins the cluster as a new node',
    },
  )
}

/**
 * Rejects with DATA_DIR_IN_USE, DATA_DIR_UNUSABLE, DATA_DIR_NEWER or DATA_DIR_MISMATCH, having changed nothing but the
 * lock file.
 */
export async function openDataDir(options: DataDirOptions): Promise<DataDir> {
  return openLocked(options, await takeLock(options.disk), () => newRecord(options))
}

/** A data directory that is only looked at; nobody else may use it meanwhile. */
export interface LockedDataDir {
  /** Goes on as a start does: from here on `DataDir.close` lets another process in. */
  open(): Promise<DataDir>
  close(): Promise<void>
}

/** Rejects as openDataDir does, and with DATA_DIR_UNUSABLE when there is none. Nothing is changed but the lock file. */
export async function lockDataDir(options: DataDirOptions): Promise<LockedDataDir> {
  const { disk } = options
  await readExisting(disk)
  const lock = await takeLock(disk)
  try {
    await checkRecord(options, await readExisting(disk), true)
  } catch (error) {
    await lock.release()
    throw explained(error)
  }
  return { open: () => openLocked(options, lock, missing), close: () => lock.release() }
}

async function readExisting(disk: Disk): Promise<NodeRecord> {
  const found = await readNodeFile(disk).catch((error: unknown) => {
    throw explained(error)
  })
  if (found !== undefined) return found
  return missing()
}

function missing(): never {
  throw new EastGuardError('DATA_DIR_UNUSABLE', `there is no ${NODE_FILE}: is it a data directory?`)
}

async function openLocked(
  options: DataDirOptions,
  lock: DiskLock,
  create: () => NodeRecord,
): Promise<DataDir> {
  const { disk } = options
  try {
    const found = await readNodeFile(disk)
    const record = found ?? create()
    await checkRecord(options, record, found !== undefined)
    const { displayName } = options
    const bootCount = record.starting + 1
    const starts = withStart(record.starts, {
      bootCount,
      id: toHex(options.random.bytes(START_ID_BYTES)),
    })
    const starting: NodeRecord = { ...record, displayName, starting: bootCount, starts }
    await disk.makeDir(options.journalDir)
    await disk.makeDir(options.walDir)
    // Makes the two directories durable as well.
    await writeNodeFile(disk, starting)
    return opened(disk, lock, starting, starts, found === undefined)
  } catch (error) {
    await lock.release()
    throw explained(error)
  }
}

async function takeLock(disk: Disk): Promise<DiskLock> {
  try {
    return await disk.lock(LOCK_FILE)
  } catch (error) {
    if (error instanceof DiskError && error.fault === 'locked') {
      throw new EastGuardError(
        'DATA_DIR_IN_USE',
        `the data directory is in use: ${error.message}`,
        {
          cause: error,
        },
      )
    }
    throw explained(error)
  }
}

/** A disk that cannot be used at start is the directory's fault, in the operator's eyes. */
function explained(error: unknown): unknown {
  if (!(error instanceof DiskError)) return error
  const message = `the data directory cannot be used: ${error.message}`
  return new EastGuardError('DATA_DIR_UNUSABLE', message, { cause: error })
}

function newRecord({ random, displayName }: DataDirOptions): NodeRecord {
  return {
    nodeId: nodeId(toHex(random.bytes(ID_BYTES))),
    displayName,
    cluster: undefined,
    journalBoots: 0,
    walBoots: 0,
    starting: 0,
    starts: [],
    met: new Map(),
    peers: [],
    refusedBy: undefined,
  }
}

async function checkRecord(
  options: DataDirOptions,
  record: NodeRecord,
  exists: boolean,
): Promise<void> {
  if (record.refusedBy !== undefined) throw refusedAsOld(record.nodeId, record.refusedBy)
  const parts = [
    [options.journalDir, record.journalBoots],
    [options.walDir, record.walBoots],
  ] as const
  for (const [dir, boots] of parts) {
    const identity = await readLogIdentity(options.disk, dir)
    const fault = exists ? partFault(identity, record, boots) : strangerFault(identity)
    if (fault !== undefined) throw mismatch(dir, fault)
  }
}

function partFault(
  identity: LogIdentity | undefined,
  record: NodeRecord,
  boots: number,
): string | undefined {
  const { starting } = record
  if (identity === undefined) {
    return boots === 0 ? undefined : `is missing, but ${NODE_FILE} has seen ${boots} starts`
  }
  if (!equalBytes(identity.nodeIdBytes, fromHex(record.nodeId))) {
    return `belongs to node ${toHex(identity.nodeIdBytes)}, ${NODE_FILE} to node ${record.nodeId}`
  }
  const { bootCount } = identity
  if (bootCount < boots) {
    return `is of start ${bootCount}, behind ${NODE_FILE}, which is of start ${boots}: was it restored?`
  }
  if (bootCount > starting) {
    return `is of start ${bootCount}, but ${NODE_FILE} of start ${starting}: was ${NODE_FILE} restored?`
  }
  return undefined
}

function strangerFault(identity: LogIdentity | undefined): string | undefined {
  if (identity === undefined) return undefined
  return `belongs to node ${toHex(identity.nodeIdBytes)}, but ${NODE_FILE} is missing`
}

function mismatch(dir: string, fault: string): EastGuardError {
  return new EastGuardError('DATA_DIR_MISMATCH', `${dir}/ ${fault}`, { detail: { part: dir } })
}

function opened(
  disk: Disk,
  lock: DiskLock,
  record: NodeRecord,
  starts: Starts,
  fresh: boolean,
): DataDir {
  const { bootCount } = newestStart(starts)
  const writer = new RecordWriter(disk, record)
  const met = new Map(record.met)
  let { cluster } = record
  let peers = addressesOf(record.peers)
  return {
    nodeId: record.nodeId,
    get cluster() {
      return cluster
    },
    peers: record.peers,
    bootCount,
    starts,
    fresh,
    identity: { nodeIdBytes: fromHex(record.nodeId), bootCount },
    joined: async (joined) => {
      assert(cluster === undefined, 'a node belongs to one cluster')
      await writer.change({ cluster: joined })
      cluster = joined
    },
    keepPeers: async (now) => {
      const kept = now.slice(0, PEERS_MAX)
      const news = addressesOf(kept)
      // What was said before may not be written yet.
      if (news === peers) return writer.flush()
      peers = news
      return writer.change({ peers: kept })
    },
    confirm: (part) =>
      writer.change({ [part === 'journal' ? 'journalBoots' : 'walBoots']: bootCount }),
    met: (node) => met.get(node),
    remember: (node, start) =>
      keep(met, node, start) ? writer.change({ met: new Map(met) }) : writer.flush(),
    refuse: (by) => writer.change({ refusedBy: by }),
    close: async () => {
      await writer.idle()
      await lock.release()
    },
  }
}

/** Equal for equal sets of addresses. */
function addressesOf(peers: readonly Address[]): string {
  return peers
    .map(({ host, port }) => `${host}:${port}`)
    .sort()
    .join()
}

/** True: it was news. Whoever was met last stands last. */
function keep(met: Map<NodeId, Start>, node: NodeId, start: Start): boolean {
  const known = met.get(node)
  const isNews = known === undefined || start.bootCount > known.bootCount
  met.delete(node)
  met.set(node, isNews ? start : known)
  if (met.size > MET_MAX) {
    for (const longestAgo of met.keys()) {
      met.delete(longestAgo)
      break
    }
  }
  return isNews
}

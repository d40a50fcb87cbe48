// node.json: who this data directory is. Text, so that people can read it; a checksum, so that nobody's slip of the pen
// becomes an identity.
//
//   { "format": 4, "nodeId": "...", "displayName": "...",
//     "cluster": { "id": "...", "foundedMs": 1767225600000, "shards": 256, "founder": true },
//     "peers": ["b:2922", ...],
//     "journalBoots": 6, "walBoots": 6, "starting": 7, "starts": ["1:5be0...", ..., "7:03af..."],
//     "met": ["<node id> 12:77c1...", ...], "refusedBy": "<node id>", "checksum": "1f2e3d4c" }
//
// There is no `cluster` before it is joined or founded. `journalBoots` and `walBoots` are the newest starts that have told these two their number, `starting` the newest that has
// begun to (data-dir.ts says why there are three). `starts` are this directory's last ones, `met` the newest of each other
// node that was met, longest ago first (model/starts.ts says what for); `refusedBy` is there when a broker has met a later
// start of this node than this directory knows.

import type { Address } from '../../base/address.ts'
import { fromUtf8, utf8 } from '../../base/bytes.ts'
import { crc32c } from '../../base/checksum.ts'
import { EastGuardError } from '../../base/errors.ts'
import { clusterId, type NodeId, nodeId } from '../../model/ids.ts'
import type { Start, Starts } from '../../model/starts.ts'
import type { ClusterIdentity } from '../../model/swim.ts'
import type { Disk } from '../../ports/disk.ts'
import { readIfThere, replaceFile } from '../checked-file.ts'

export const NODE_FILE = 'node.json'
const FORMAT = 4

/** The cluster that a node belongs to, for ever. */
export interface NodeCluster extends ClusterIdentity {
  /** It founded it, and so is the first member of every metadata shard. */
  readonly founder: boolean
}

export interface NodeRecord {
  readonly nodeId: NodeId
  readonly displayName: string
  /** Undefined before it has joined or founded one. */
  readonly cluster: NodeCluster | undefined
  readonly journalBoots: number
  readonly walBoots: number
  readonly starting: number
  /** Empty before the first. */
  readonly starts: Starts | readonly []
  readonly met: ReadonlyMap<NodeId, Start>
  /** Where others of the cluster were last known to be. */
  readonly peers: readonly Address[]
  /** Undefined while nobody has refused it as an older copy. */
  readonly refusedBy: NodeId | undefined
}

/** A record as JSON has it. */
interface Written extends Omit<NodeRecord, 'starts' | 'met' | 'peers'> {
  readonly starts: readonly string[]
  readonly met: readonly string[]
  /** Undefined in files of versions that did not keep them. */
  readonly peers: readonly string[] | undefined
}

/** Undefined when there is none. Throws DATA_DIR_NEWER or DATA_DIR_UNUSABLE. */
export async function readNodeFile(disk: Disk): Promise<NodeRecord | undefined> {
  const bytes = await readIfThere(disk, NODE_FILE)
  return bytes === undefined ? undefined : decode(bytes)
}

/** Durable when it resolves; a crash leaves the old record or the new. */
export function writeNodeFile(disk: Disk, record: NodeRecord): Promise<void> {
  return replaceFile(disk, NODE_FILE, [encode(record)])
}

function encode(record: NodeRecord): Uint8Array {
  const written: Written = {
    ...record,
    starts: record.starts.map(startText),
    met: Array.from(record.met, ([node, start]) => `${node} ${startText(start)}`),
    peers: record.peers.map(addressText),
  }
  const content = { format: FORMAT, ...written }
  return utf8(`${JSON.stringify({ ...content, checksum: checksumOf(content) }, undefined, 2)}\n`)
}

function decode(bytes: Uint8Array): NodeRecord {
  let parsed: unknown
  try {
    parsed = JSON.parse(fromUtf8(bytes))
  } catch (cause) {
    throw unusable('it is not JSON', cause)
  }
  if (typeof parsed !== 'object' || parsed === null) throw unusable('it is not an object')
  const { checksum, ...content } = parsed as Record<string, unknown>
  if (typeof content['format'] === 'number' && content['format'] > FORMAT) {
    const message = `${NODE_FILE} has format ${content['format']}, this version knows ${FORMAT}`
    throw new EastGuardError('DATA_DIR_NEWER', message)
  }
  if (typeof content['format'] === 'number' && content['format'] < FORMAT) {
    const message = `${NODE_FILE} has format ${content['format']}, this version reads ${FORMAT} only`
    throw new EastGuardError('DATA_DIR_UNUSABLE', message, {
      hint: 'begin with an empty directory',
    })
  }
  if (content['format'] !== FORMAT || checksum !== checksumOf(content)) {
    throw unusable('its checksum does not match')
  }
  // The checksum says that we wrote it, so its fields have the types that we gave them.
  const record = content as unknown as Written
  return {
    nodeId: nodeId(record.nodeId),
    displayName: record.displayName,
    cluster:
      record.cluster === undefined
        ? undefined
        : { ...record.cluster, id: clusterId(record.cluster.id) },
    journalBoots: record.journalBoots,
    walBoots: record.walBoots,
    starting: record.starting,
    starts: record.starts.map(startOf) as unknown as Starts,
    met: new Map(record.met.map(metOf)),
    peers: record.peers?.map(addressOf) ?? [],
    refusedBy: record.refusedBy === undefined ? undefined : nodeId(record.refusedBy),
  }
}

function addressText({ host, port }: Address): string {
  return `${host}:${port}`
}

function addressOf(text: string): Address {
  const colon = text.lastIndexOf(':')
  return { host: text.slice(0, colon), port: Number(text.slice(colon + 1)) }
}

function startText({ bootCount, id }: Start): string {
  return `${bootCount}:${id}`
}

function startOf(text: string): Start {
  const [bootCount = '', id = ''] = text.split(':')
  return { bootCount: Number(bootCount), id }
}

function metOf(text: string): readonly [NodeId, Start] {
  const [node = '', start = ''] = text.split(' ')
  return [nodeId(node), startOf(start)]
}

function checksumOf(content: Readonly<Record<string, unknown>>): string {
  return crc32c(utf8(JSON.stringify(content)))
    .toString(16)
    .padStart(8, '0')
}

function unusable(what: string, cause?: unknown): EastGuardError {
  return new EastGuardError('DATA_DIR_UNUSABLE', `${NODE_FILE} is damaged: ${what}`, {
    cause,
    hint: 'restore the whole data directory, or start a new broker on an empty one',
  })
}

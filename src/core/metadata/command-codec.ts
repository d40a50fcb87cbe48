// Commands as bytes, as they stand in the metadata log:
//
//   0  u8  kind      the numbers below never change their meaning
//   1  u8  version   of this kind's body; the newest is written, older ones are read as well
//   2      body      codec/ has one file per family
//
// A number that is unknown, or a body that does not end where the bytes end, is Truncated: what a newer broker has
// written must not be half understood.

import { ByteReader, ByteWriter } from '../../base/cursor.ts'
import {
  readAddNode,
  readFoundCluster,
  readSetNodeRole,
  writeAddNode,
  writeFoundCluster,
  writeSetNodeRole,
} from './codec/cluster.ts'
import { readMergeRange, readSplitRange, writeMergeRange, writeSplitRange } from './codec/ranges.ts'
import {
  readDropSegments,
  readSetLogStart,
  writeDropSegments,
  writeSetLogStart,
} from './codec/retention.ts'
import {
  readCancelEnd,
  readReassignSegment,
  readRollSegment,
  readSettleSegment,
  writeCancelEnd,
  writeReassignSegment,
  writeRollSegment,
  writeSettleSegment,
} from './codec/segments.ts'
import {
  readAddPartitions,
  readAlterTopic,
  readCreateTopic,
  readDeleteTopic,
  writeAddPartitions,
  writeAlterTopic,
  writeCreateTopic,
  writeDeleteTopic,
} from './codec/topics.ts'
import type { AllocateProducerIds, Command, CommandKind, CommandOf } from './commands.ts'
import { malformed } from './fields.ts'

interface Codec<K extends CommandKind> {
  readonly number: number
  /** The newest; absent: there is only the first. */
  readonly version?: number
  readonly write: (w: ByteWriter, command: CommandOf<K>) => void
  readonly read: (r: ByteReader, version: number) => CommandOf<K>
}

const FIRST_VERSION = 1

const CODECS: { readonly [K in CommandKind]: Codec<K> } = {
  CreateTopic: { number: 1, write: writeCreateTopic, read: readCreateTopic },
  DeleteTopic: { number: 2, write: writeDeleteTopic, read: readDeleteTopic },
  AlterTopic: { number: 3, write: writeAlterTopic, read: readAlterTopic },
  AddPartitions: { number: 4, write: writeAddPartitions, read: readAddPartitions },
  RollSegment: { number: 5, version: 2, write: writeRollSegment, read: readRollSegment },
  CancelEnd: { number: 6, write: writeCancelEnd, read: readCancelEnd },
  SplitRange: { number: 7, write: writeSplitRange, read: readSplitRange },
  MergeRange: { number: 8, write: writeMergeRange, read: readMergeRange },
  ReassignSegment: {
    number: 9,
    version: 2,
    write: writeReassignSegment,
    read: readReassignSegment,
  },
  DropSegments: { number: 10, write: writeDropSegments, read: readDropSegments },
  SetLogStart: { number: 11, write: writeSetLogStart, read: readSetLogStart },
  AllocateProducerIds: { number: 12, write: writeAllocate, read: readAllocate },
  FoundCluster: { number: 13, write: writeFoundCluster, read: readFoundCluster },
  AddNode: { number: 14, write: writeAddNode, read: readAddNode },
  SetNodeRole: { number: 15, write: writeSetNodeRole, read: readSetNodeRole },
  SettleSegment: { number: 16, write: writeSettleSegment, read: readSettleSegment },
}

const BY_NUMBER: ReadonlyMap<number, Codec<CommandKind>> = new Map(
  Object.values(CODECS).map((codec) => [codec.number, codec as unknown as Codec<CommandKind>]),
)

export function encodeCommand(command: Command): Uint8Array {
  const codec = CODECS[command.kind] as unknown as Codec<CommandKind>
  const w = new ByteWriter()
  w.u8(codec.number).u8(codec.version ?? FIRST_VERSION)
  codec.write(w, command)
  return w.finish()
}

/** Throws Truncated. */
export function decodeCommand(bytes: Uint8Array): Command {
  const r = new ByteReader(bytes)
  const number = r.u8()
  const codec = BY_NUMBER.get(number)
  if (codec === undefined) throw malformed(`there is no metadata command ${number}`)
  const version = r.u8()
  if (version < FIRST_VERSION || version > (codec.version ?? FIRST_VERSION)) {
    throw malformed(`metadata command ${number} has version ${version}`)
  }
  const command = codec.read(r, version)
  r.done()
  return command
}

function writeAllocate(w: ByteWriter, command: AllocateProducerIds): void {
  w.u32(command.count)
}
function readAllocate(r: ByteReader): AllocateProducerIds {
  return { kind: 'AllocateProducerIds', count: r.u32() }
}

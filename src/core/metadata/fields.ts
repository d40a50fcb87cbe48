// The parts that commands and snapshots are made of, written and read. Reading throws Truncated for anything that was not
// written by the functions beside it: never another error, and never more memory than the bytes can account for.
//
//   ids      model/id-bytes.ts     text     u16 length, UTF-8
//   offsets  u32 count, count x u64
//   policy   13 fields in the order of POLICY_FIELDS; choices as one byte, numbers as i64

import { type ByteReader, type ByteWriter, Truncated } from '../../base/cursor.ts'
import { readNodeIds, writeNodeIds } from '../../model/id-bytes.ts'
import { ACKS, TIERS, type TopicPolicy } from '../../model/policy.ts'
import type { ChildPlacement, GivenEnd, PolicyChanges } from './commands.ts'
import type { Placement } from './types.ts'

const RANGE_MODES = ['auto', 'fixed'] as const

/** The order is the format: new fields go to the end. */
const POLICY_FIELDS = [
  'partitions',
  'rangeMode',
  'ranges',
  'replicationFactor',
  'minInsyncReplicas',
  'acksDefault',
  'retentionMs',
  'retentionBytes',
  'segmentBytes',
  'segmentEntries',
  'segmentMs',
  'maxMessageBytes',
  'tier',
] as const satisfies readonly (keyof TopicPolicy)[]

const CHOICES: Partial<Record<keyof TopicPolicy, readonly string[]>> = {
  rangeMode: RANGE_MODES,
  acksDefault: ACKS,
  tier: TIERS,
}

export function malformed(what: string): Truncated {
  return new Truncated(what)
}

export function writeOffsets(w: ByteWriter, offsets: readonly number[]): void {
  w.u32(offsets.length)
  for (const offset of offsets) w.i64(offset)
}
export function readOffsets(r: ByteReader): readonly number[] {
  return Array.from({ length: r.count(8) }, () => r.u53())
}

export function writeNumbers(w: ByteWriter, numbers: readonly number[]): void {
  w.u32(numbers.length)
  for (const number of numbers) w.u32(number)
}
export function readNumbers(r: ByteReader): readonly number[] {
  return Array.from({ length: r.count(4) }, () => r.u32())
}

export function writePlacement(w: ByteWriter, placement: Placement): void {
  writeNodeIds(w, placement.replicas)
  w.text(placement.token).text(placement.stateDigest)
}
export function readPlacement(r: ByteReader): Placement {
  return { replicas: readNodeIds(r), token: r.text(), stateDigest: r.text() }
}

export function writeChild(w: ByteWriter, child: ChildPlacement): void {
  w.u32(child.range)
  writePlacement(w, child)
}
export function readChild(r: ByteReader): ChildPlacement {
  return { range: r.u32(), ...readPlacement(r) }
}

export function writeGivenEnd(w: ByteWriter, given: GivenEnd): void {
  w.u32(given.range).i64(given.segment).u32(given.attempt).i64(given.endEntry)
  writeOffsets(w, given.nextOffsets)
}
export function readGivenEnd(r: ByteReader): GivenEnd {
  return {
    range: r.u32(),
    segment: r.u53(),
    attempt: r.u32(),
    endEntry: r.u53(),
    nextOffsets: readOffsets(r),
  }
}

export function writePolicy(w: ByteWriter, policy: TopicPolicy): void {
  for (const field of POLICY_FIELDS) writeField(w, field, policy[field])
}
export function readPolicy(r: ByteReader): TopicPolicy {
  const policy: Record<string, unknown> = {}
  for (const field of POLICY_FIELDS) policy[field] = readField(r, field)
  // Every field was read with the type that its name has.
  return policy as unknown as TopicPolicy
}

/** u16 of bits, bit i for POLICY_FIELDS[i]; then the fields whose bit is set. */
export function writeChanges(w: ByteWriter, changes: PolicyChanges): void {
  const given: Partial<TopicPolicy> = changes
  const present = POLICY_FIELDS.map((field) => given[field] !== undefined)
  w.u16(present.reduce((bits, set, i) => bits | (set ? 1 << i : 0), 0))
  for (const field of POLICY_FIELDS) {
    const value = given[field]
    if (value !== undefined) writeField(w, field, value)
  }
}
export function readChanges(r: ByteReader): PolicyChanges {
  const bits = r.u16()
  if (bits >= 1 << POLICY_FIELDS.length) throw malformed(`policy fields 0x${bits.toString(16)}`)
  const changes: Record<string, unknown> = {}
  for (const [i, field] of POLICY_FIELDS.entries()) {
    if ((bits & (1 << i)) !== 0) changes[field] = readField(r, field)
  }
  return changes as PolicyChanges
}

function writeField(w: ByteWriter, field: keyof TopicPolicy, value: string | number): void {
  const choices = CHOICES[field]
  if (choices !== undefined) w.u8(choices.indexOf(value as string))
  else w.i64(value as number)
}
function readField(r: ByteReader, field: keyof TopicPolicy): string | number {
  const choices = CHOICES[field]
  if (choices === undefined) return r.i64()
  const index = r.u8()
  const choice = choices[index]
  if (choice === undefined) throw malformed(`choice ${index} of ${field}`)
  return choice
}

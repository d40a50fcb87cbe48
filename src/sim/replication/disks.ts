// Looks at the brokers' disks from outside, asking no broker anything.
//
//   [I7]  when a record is acknowledged at acks=all, or read, `min_insync_replicas` disks would have it after a power cut now;
//         all that hold its segment, when it is acknowledged while that is open; they, or all that keep its tail, when by its seal
//         when a replica of a sealed segment goes, as many others as there should be have the segment's last entry
//         what a running broker has in segments' files it would have after a power cut: it counts for a copy, and says so
//   [I2]  whatever entry of a segment is in a file of two brokers is the same in both

import { utf8 } from '../../base/bytes.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Machine, Watcher } from '../machine.ts'
import { lastEntry, type SegmentFiles, segmentFiles, unsyncedEntries } from './files.ts'

/**
 * Looking through all disks costs as much as some hundred records: of those one in so many is looked for. What a seal acknowledges
 * may have been on one disk alone before.
 */
const LOOK_EVERY = { acknowledged: 25, 'acknowledged by a seal': 4, read: 500 } as const

/** So many, or all of one of these. */
export type Due = number | readonly (readonly NodeId[])[]

export interface DisksOptions {
  readonly machines: readonly Machine[]
  readonly watcher: Watcher
  /** Something on this broker's disk may be gone, or wrong. */
  readonly mayLack: (broker: number) => boolean
  /** What is in its files may be wrong. */
  readonly mayBeWrong: (broker: number) => boolean
}

export class Disks {
  /** Records that were looked for. */
  looks = 0
  private readonly options: DisksOptions
  private readonly told = { acknowledged: 0, 'acknowledged by a seal': 0, read: 0 }

  constructor(options: DisksOptions) {
    this.options = options
  }

  /** `nameOf` is that of a record as ../judge.ts gives it. */
  mustHave(nameOf: () => string, due: () => Due, how: keyof typeof LOOK_EVERY): void {
    if (this.told[how]++ % LOOK_EVERY[how] !== 0) return
    this.looks++
    const name = nameOf()
    const wanted = Buffer.from(utf8(`${name}\n`))
    const { machines, mayLack, watcher } = this.options
    const holds = ({ disk }: Machine, broker: number): boolean =>
      mayLack(broker) || has(disk, wanted)
    const must = due()
    // As few disks are looked through as tell that all is well.
    let found = 0
    const well =
      typeof must === 'number'
        ? machines.some((one, broker) => holds(one, broker) && ++found >= must)
        : must.some((nodes) =>
            machines.every((one, broker) => !owes(one, nodes) || holds(one, broker)),
          )
    if (well) return
    const holders = machines.filter(holds)
    const where = holders.map(({ host }) => host).join(' ')
    const lacking = (nodes: readonly NodeId[]): string =>
      machines
        .filter((one) => owes(one, nodes) && !holders.includes(one))
        .map(({ host }) => host)
        .join(' ')
    const owed =
      typeof must === 'number'
        ? `${must} copies`
        : `copies on ${must.map(lacking).join(', or ')} too`
    watcher.violation(`${name} is ${how} with ${owed} due, and durable on: ${where}`)
  }

  /** Of the sealed segment `key` of `end` entries, when it is no longer asked of whoever had it before. */
  mustRemain(key: string, end: number, wanted: number, left: readonly NodeId[]): void {
    const { machines, mayBeWrong, mayLack, watcher } = this.options
    const last = lastEntry(
      machines.filter((_, broker) => !mayBeWrong(broker)).map(({ disk }) => disk),
      key,
      end,
    )
    if (last === undefined) return
    this.looks++
    const lacking = machines.filter(({ disk, nodeId, ready }, broker) => {
      if (nodeId === undefined || !left.includes(nodeId) || !ready) return false
      return !mayLack(broker) && !has(disk, last)
    })
    const holders = left.length - lacking.length
    if (holders >= Math.min(wanted, left.length)) return
    const names = lacking.map(({ host }) => host).join(' ')
    watcher.violation(
      `a replica of ${key} is dropped, and ${names} of those left lack entry ${end - 1}`,
    )
  }

  /** In files, or in the log still. What a process that was killed left unsynced is there after its restart, too. */
  mustKeep(): void {
    const { machines, watcher } = this.options
    for (const { disk, host, ready } of machines) {
      if (!ready) continue
      for (const { segment, entry, batch } of unsyncedEntries(disk)) {
        if (has(disk, batch)) continue
        watcher.violation(`${host} has entry ${entry} of ${segment}, and not after a power cut`)
        return
      }
    }
  }

  /** But for those whose files may be wrong. Answers what is in the files. */
  compare(): readonly SegmentFiles[] {
    const { machines, mayBeWrong, watcher } = this.options
    const all = machines.map(({ disk }) => segmentFiles(disk))
    const truth = new Map<string, Map<number, { bytes: Uint8Array; host: string }>>()
    for (const [broker, files] of all.entries()) {
      if (mayBeWrong(broker)) continue
      const host = machines[broker]?.host ?? ''
      for (const [segment, entries] of files) {
        const known = truth.get(segment) ?? new Map<number, { bytes: Uint8Array; host: string }>()
        truth.set(segment, known)
        for (const [entry, bytes] of entries) {
          const other = known.get(entry)
          if (other === undefined) known.set(entry, { bytes, host })
          else if (Buffer.compare(other.bytes, bytes) !== 0) {
            watcher.violation(`entry ${entry} of ${segment}: ${other.host} and ${host} differ`)
          }
        }
      }
    }
    return all
  }
}

/** A node that is no more had it on a disk that was lost. */
function owes({ nodeId }: Machine, nodes: readonly NodeId[]): boolean {
  return nodeId !== undefined && nodes.includes(nodeId)
}

function has(disk: Machine['disk'], wanted: Buffer): boolean {
  for (const [, bytes] of disk.durable(['wal/', 'topics/'])) {
    const { buffer, byteOffset, length } = bytes
    if (Buffer.from(buffer, byteOffset, length).includes(wanted)) return true
  }
  return false
}

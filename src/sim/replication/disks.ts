// Looks at the brokers' disks from outside, asking no broker anything.
//
//   [I7]  when a record is acknowledged at acks=all, or read, `min_insync_replicas` disks would have it after a power cut now;
//         all that hold its segment, when it is acknowledged while that is open
//   [I2]  whatever entry of a segment is in a file of two brokers is the same in both

import { utf8 } from '../../base/bytes.ts'
import type { NodeId } from '../../model/ids.ts'
import type { Machine, Watcher } from '../machine.ts'
import { type SegmentFiles, segmentFiles } from './files.ts'

/** Looking through all disks costs as much as some hundred records: of those one in so many is looked for. */
const LOOK_EVERY = { acknowledged: 25, read: 500 } as const

export interface DisksOptions {
  readonly machines: readonly Machine[]
  readonly watcher: Watcher
  /** Something on this broker's disk may be gone, or wrong. */
  readonly mayLack: (broker: number) => boolean
}

export class Disks {
  /** Records that were looked for. */
  looks = 0
  private readonly options: DisksOptions
  private readonly told = { acknowledged: 0, read: 0 }

  constructor(options: DisksOptions) {
    this.options = options
  }

  /** `nameOf` is that of a record as ../judge.ts gives it; `due` says who must have it, or how many. */
  mustHave(
    nameOf: () => string,
    due: () => number | readonly NodeId[],
    how: keyof typeof LOOK_EVERY,
  ): void {
    if (this.told[how]++ % LOOK_EVERY[how] !== 0) return
    this.looks++
    const name = nameOf()
    const wanted = Buffer.from(utf8(`${name}\n`))
    const { machines, mayLack, watcher } = this.options
    const holds = ({ disk }: Machine, broker: number): boolean =>
      mayLack(broker) || has(disk, wanted)
    const must = due()
    // A node that is no more had it on a disk that was lost.
    const owes = ({ nodeId }: Machine): boolean =>
      typeof must !== 'number' && nodeId !== undefined && must.includes(nodeId)
    // As few disks are looked through as tell that all is well.
    let found = 0
    const well =
      typeof must === 'number'
        ? machines.some((one, broker) => holds(one, broker) && ++found >= must)
        : machines.every((one, broker) => !owes(one) || holds(one, broker))
    if (well) return
    const holders = machines.filter(holds)
    const where = holders.map(({ host }) => host).join(' ')
    const copies = typeof must === 'number' ? must : must.length
    const lacking = machines.filter((one) => owes(one) && !holders.includes(one))
    const owed = `${copies} copies due${lacking.map(({ host }) => `, one on ${host}`).join('')}`
    watcher.violation(`${name} is ${how} with ${owed}, and durable on: ${where}`)
  }

  /** But for those whose files may be wrong. Answers what is in the files. */
  compare(mayBeWrong: (broker: number) => boolean): readonly SegmentFiles[] {
    const { machines, watcher } = this.options
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

function has(disk: Machine['disk'], wanted: Buffer): boolean {
  for (const [, bytes] of disk.durable(['wal/', 'topics/'])) {
    const { buffer, byteOffset, length } = bytes
    if (Buffer.from(buffer, byteOffset, length).includes(wanted)) return true
  }
  return false
}

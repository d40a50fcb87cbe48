// What a leader knows of one follower's log, and how it sends to it:
//
//   probe      one append at a time, until it is known where the logs agree
//   replicate  appends in a pipeline: `next` runs ahead of the answers, within a bound
//   snapshot   what it needs is compacted: parts of a snapshot, one at a time
//
//   probe ──accepted──> replicate ──refused, or silent──> probe        either ──compacted──> snapshot ──whole──> probe

import type { Snapshot } from '../../model/raft.ts'

const ROUNDS_UNTIL_LOST = 3

export class Progress {
  state: 'probe' | 'replicate' | 'snapshot' = 'probe'
  /** Agreed and durable there. */
  match = 0
  next: number
  /** The last indexes of appends without an answer. */
  private readonly inFlight: number[] = []
  /** A probe, or a part of a snapshot, waits for its answer. */
  waiting = false
  snapshot: Snapshot | undefined
  snapshotOffset = 0
  /** The newest round that it has answered. */
  round = 0
  /** The commit index that it was last told, as far as it had the entries then; a beat may be the first to arrive. */
  toldCommit = 0
  /** The round in which something was last sent that wants an answer of its own. */
  private sentInRound = 0

  constructor(next: number) {
    this.next = next
  }

  maySend(appendsInFlightMax: number): boolean {
    if (this.state === 'replicate') return this.inFlight.length < appendsInFlightMax
    return !this.waiting
  }

  /** An append with entries up to `last` leaves; `last` is below `next` when it is empty. */
  sent(last: number, round: number): void {
    this.sentInRound = round
    if (this.state === 'replicate') {
      if (last >= this.next) this.inFlight.push(last)
      this.next = Math.max(this.next, last + 1)
    } else this.waiting = true
  }

  accepted(match: number): void {
    while (this.inFlight.length > 0 && (this.inFlight[0] as number) <= match) this.inFlight.shift()
    this.match = Math.max(this.match, match)
    this.next = Math.max(this.next, this.match + 1)
    this.waiting = false
    if (this.state === 'probe') {
      this.state = 'replicate'
      // What the probe was to follow may be further than what is known by now.
      this.next = this.match + 1
    }
    if (this.state === 'snapshot' && this.match >= (this.snapshot?.index ?? 0)) this.probe()
  }

  /** The logs do not agree at `prevIndex`; they may at `agreement`. An answer to what was not asked last is old. */
  refused(prevIndex: number, agreement: number): void {
    if (this.state === 'snapshot' || prevIndex < this.match) return
    if (this.state === 'probe' && prevIndex !== this.next - 1) return
    // It had this much: it was removed, has deleted its log and is back, and what it said before its removal came late.
    if (prevIndex === this.match) this.match = Math.min(this.match, agreement)
    this.probe()
    this.next = Math.max(this.match + 1, Math.min(prevIndex, agreement + 1))
  }

  /** What was sent may be lost: begin again behind what is known. */
  probe(): void {
    this.state = 'probe'
    this.next = this.match + 1
    this.inFlight.length = 0
    this.waiting = false
    this.snapshot = undefined
  }

  beginSnapshot(snapshot: Snapshot): void {
    this.probe()
    this.state = 'snapshot'
    this.snapshot = snapshot
    this.snapshotOffset = 0
  }

  /**
   * It has answered a round, which it does at once, and not what was sent some rounds before, for which it has to go to its
   * disk: that was lost, or its disk is slow, and then sending once more costs little.
   */
  answered(round: number): void {
    if (round <= this.round) return
    this.round = round
    const open = this.inFlight.length > 0 || this.waiting
    if (!open || round < this.sentInRound + ROUNDS_UNTIL_LOST) return
    if (this.state === 'replicate') this.probe()
    else this.waiting = false
  }
}

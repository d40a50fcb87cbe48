// What a member wants done, collected until it is taken.

import type { Entry, HardState, Message } from '../../model/raft.ts'
import type { RaftLog } from './log.ts'
import type { Effects, ReadAnswer } from './types.ts'

export class Outbox {
  private messages: Message[] = []
  private messagesAfterSync: Message[] = []
  private hardStateChanged = false
  private unpersistedFrom: number | undefined
  private truncatedFrom: number | undefined
  private newSnapshot = false
  private installed = false
  private reads: ReadAnswer[] = []

  get isEmpty(): boolean {
    return (
      this.messages.length === 0 &&
      this.messagesAfterSync.length === 0 &&
      this.unpersistedFrom === undefined &&
      !this.hardStateChanged &&
      !this.newSnapshot &&
      this.truncatedFrom === undefined &&
      this.reads.length === 0
    )
  }

  send(message: Message): void {
    this.messages.push(message)
  }

  sendAfterSync(message: Message): void {
    this.messagesAfterSync.push(message)
  }

  answerRead(answer: ReadAnswer): void {
    this.reads.push(answer)
  }

  changeHardState(): void {
    this.hardStateChanged = true
  }

  /** The log has an entry at `index` that is not on the disk. */
  append(index: number): void {
    this.unpersistedFrom = Math.min(this.unpersistedFrom ?? index, index)
  }

  /** The log ends before `index` now. */
  cutOff(index: number): void {
    this.truncatedFrom = Math.min(this.truncatedFrom ?? index, index)
    if (this.unpersistedFrom !== undefined && this.unpersistedFrom >= index) {
      this.unpersistedFrom = undefined
    }
  }

  compact(): void {
    this.newSnapshot = true
  }

  /** The log is a snapshot after `index`, and nothing else. */
  install(index: number): void {
    this.newSnapshot = true
    this.installed = true
    this.truncatedFrom = index + 1
    this.unpersistedFrom = undefined
  }

  take(log: RaftLog, hardState: HardState, committed: readonly Entry[]): Effects {
    const { lastIndex, lastTerm } = log
    const from = this.unpersistedFrom
    // What is said in a new term, or with a new vote, is said when that cannot be forgotten any more.
    const [now, later] = this.hardStateChanged
      ? [[], [...this.messages, ...this.messagesAfterSync]]
      : [this.messages, this.messagesAfterSync]
    const effects: Effects = {
      messages: now,
      hardState: this.hardStateChanged ? hardState : undefined,
      snapshot: this.newSnapshot ? log.snapshot : undefined,
      installed: this.installed,
      truncatedFrom: this.truncatedFrom,
      entries: from === undefined ? [] : log.slice(from, lastIndex, Number.POSITIVE_INFINITY),
      messagesAfterSync: later,
      committed,
      reads: this.reads,
      mark: { index: lastIndex, term: lastTerm },
    }
    this.messages = []
    this.messagesAfterSync = []
    this.hardStateChanged = false
    this.unpersistedFrom = undefined
    this.truncatedFrom = undefined
    this.newSnapshot = false
    this.installed = false
    this.reads = []
    return effects
  }
}

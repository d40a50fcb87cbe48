// The topics of a run as their owner knows them: which exist, which life of a name this is, and whether that is certain.

import type { TopicId } from '../../model/ids.ts'

/** `unsure`: a creation or deletion is under way, or nobody knows how it ended. */
type State = 'absent' | 'present' | 'unsure'

export class TopicLife {
  readonly name: string
  readonly partitions: number
  readonly segmentEntries: number
  /** Partitions that this life has now, for certain. */
  width: number
  state: State = 'absent'
  id: TopicId | undefined
  private lives = 0
  /** Sends into this life that have no outcome yet. */
  readonly sending: Set<Promise<void>> = new Set()

  constructor(
    name: string,
    { partitions, segmentEntries }: { partitions: number; segmentEntries: number },
  ) {
    this.name = name
    this.partitions = partitions
    this.segmentEntries = segmentEntries
    this.width = partitions
  }

  /** What the judge calls the records of this life. */
  get log(): string {
    return `${this.name}#${this.lives}`
  }

  begin(): void {
    this.lives++
    this.width = this.partitions
    this.state = 'unsure'
  }
}

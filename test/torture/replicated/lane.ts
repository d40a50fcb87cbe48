// What must be true of a partition that one producer writes, kept apart from everything it judges. Its records are numbered
// 0, 1, 2, ... in the order they were sent.
//
//   firm    acks=all, idempotent   record n is at offset n, for ever: [I1] nothing acknowledged is lost, [I10] once, [I11] in order
//   loose   acks=1                 a leader that is lost takes some with it, and a retry may store a record twice
//   both                           [I4] offsets are dense, [I5] only what was sent is read, and whoever reads an offset, from
//                                  whichever replica and whenever, reads the same record there

export class Lane {
  readonly topic: string
  readonly partition: number
  /** Of its producer, among all: its records are made from it. */
  readonly producer: number
  readonly firm: boolean
  readonly violations: string[] = []
  acknowledgements = 0
  reads = 0
  private sent = 0
  /** One more than the greatest acknowledged offset. */
  private end = 0
  private readonly acknowledged = new Map<number, number>()
  /** By offset, what somebody has read there. */
  private readonly seen: number[] = []

  constructor(topic: string, partition: number, producer: number, firm: boolean) {
    this.topic = topic
    this.partition = partition
    this.producer = producer
    this.firm = firm
  }

  /** Acknowledged records end here; of a loose lane those that were read, since others may be lost. */
  get certain(): number {
    return this.firm ? this.end : this.seen.length
  }

  /** The number of the next record. */
  send(): number {
    return this.sent++
  }

  acknowledge(number: number, offset: number): void {
    this.acknowledgements++
    this.end = Math.max(this.end, offset + 1)
    if (!this.firm) return
    const other = this.acknowledged.get(offset)
    if (other !== undefined) this.say(offset, `acknowledged twice: ${other} and ${number}`)
    if (offset !== number) this.say(offset, `record ${number} was acknowledged here`)
    this.acknowledged.set(offset, number)
  }

  failed(number: number, error: unknown): void {
    this.violations.push(`${this.name}: record ${number} was refused: ${String(error)}`)
  }

  /** `number`: undefined when these bytes were never sent. `reader` expects `expected`. */
  read(reader: string, offset: number, number: number | undefined, expected: number): void {
    this.reads++
    if (offset !== expected) this.say(offset, `${reader} expected offset ${expected}`)
    if (number === undefined || number >= this.sent) {
      this.say(offset, `${reader} read what was never sent`)
      return
    }
    const before = this.seen[offset]
    if (before !== undefined && before !== number) {
      this.say(offset, `${reader} read record ${number}, where ${before} was read before`)
    }
    this.seen[offset] ??= number
    if (this.firm && offset !== number) this.say(offset, `${reader} read record ${number}`)
  }

  /** `reader` has read below `position`, and began when `certain` was that. */
  ended(reader: string, position: number, certain: number): void {
    if (position < certain) {
      this.violations.push(
        `${this.name}: ${reader} can read only below offset ${position}, acknowledged is all below ${certain}`,
      )
    }
  }

  get name(): string {
    return `${this.topic}/${this.partition}`
  }

  private say(offset: number, what: string): void {
    this.violations.push(`${this.name} offset ${offset}: ${what}`)
  }
}

// What must be true, kept in memory and apart from everything it judges: which records were sent, which of them were
// acknowledged, and where. A producer writes with one key, so all its records lie in one partition, numbered 0, 1, 2, ...
// in the order they were sent; with idempotence each is there once. It judges [I1] (what was acknowledged is there), [I4]
// (offsets are dense), [I5] (nothing is read that was never sent), [I10] (once) and [I11] (in order).

export class Oracle {
  /** Per producer: how many records it has handed to its client. */
  private readonly sent: number[]
  /** Per partition and offset: "producer:number" of an acknowledged record. */
  private readonly acknowledged = new Map<number, Map<number, string>>()
  private readonly ends = new Map<number, number>()
  private readonly nextOffset = new Map<number, number>()
  /** Per producer: the number of the last record that was read. */
  private readonly lastRead: number[]
  readonly violations: string[] = []
  acknowledgements = 0
  verified = 0

  constructor(producers: number) {
    this.sent = Array.from({ length: producers }, () => 0)
    this.lastRead = Array.from({ length: producers }, () => -1)
  }

  /** The number of the producer's next record. */
  send(producer: number): number {
    const number = this.sent[producer] as number
    this.sent[producer] = number + 1
    return number
  }

  acknowledge(producer: number, number: number, partition: number, offset: number): void {
    this.acknowledgements++
    let offsets = this.acknowledged.get(partition)
    if (offsets === undefined) {
      offsets = new Map()
      this.acknowledged.set(partition, offsets)
    }
    const other = offsets.get(offset)
    if (other !== undefined) {
      this.violations.push(
        `partition ${partition} offset ${offset} was acknowledged twice: ${other}, ${producer}:${number}`,
      )
    }
    offsets.set(offset, `${producer}:${number}`)
    this.ends.set(partition, Math.max(this.ends.get(partition) ?? 0, offset + 1))
  }

  /** Where the reader of a partition goes on; a full pass begins again at 0. */
  position(partition: number): number {
    return this.nextOffset.get(partition) ?? 0
  }

  beginAgain(): void {
    this.nextOffset.clear()
    this.lastRead.fill(-1)
  }

  read(
    partition: number,
    offset: number,
    record: { producer: number; number: number } | undefined,
  ): void {
    this.verified++
    const where = `partition ${partition} offset ${offset}`
    const expected = this.position(partition)
    if (offset !== expected) this.violations.push(`${where}: offset ${expected} was expected`)
    this.nextOffset.set(partition, offset + 1)
    if (record === undefined) {
      this.violations.push(`${where}: bytes that were never sent`)
      return
    }
    const name = `${record.producer}:${record.number}`
    if (record.number >= (this.sent[record.producer] ?? 0)) {
      this.violations.push(`${where}: ${name} was never sent`)
      return
    }
    const known = this.acknowledged.get(partition)?.get(offset)
    if (known !== undefined && known !== name) {
      this.violations.push(`${where}: ${known} was acknowledged here, ${name} is here`)
    }
    const last = this.lastRead[record.producer] as number
    if (record.number !== last + 1) {
      const what = record.number <= last ? 'again or out of order' : 'with a hole before it'
      this.violations.push(`${where}: ${name} ${what}, after ${record.producer}:${last}`)
    }
    this.lastRead[record.producer] = record.number
  }

  /** Acknowledged at or behind the place where reading ended: lost. `until` was taken before the reading began. */
  missing(until: ReadonlyMap<number, number>): void {
    for (const [partition, end] of until) {
      const position = this.position(partition)
      if (position < end) {
        this.violations.push(
          `partition ${partition}: acknowledged up to offset ${end - 1}, readable only below ${position}`,
        )
      }
    }
  }

  /** Per partition, one more than the greatest offset acknowledged up to now. */
  acknowledgedEnds(): Map<number, number> {
    return new Map(this.ends)
  }
}

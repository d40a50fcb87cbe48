// Numbered records, and what became of each: nothing that was acknowledged may be missing for readers, and what has one key
// comes in the order in which it was sent, each once.
//
//   value   f64 when it should have been sent │ u32 number │ zeros

export class Tally {
  private acknowledged = new Uint8Array(1024)
  private wasRead = new Uint8Array(1024)
  private readonly lastOfKey = new Map<string, number>()
  private next = 0
  acks = 0
  reads = 0
  /** Came twice, or behind one that was sent later. */
  misordered = 0

  /** The value of the next record, which has that number from then on. */
  value(
    bytes: number,
    intendedMs: number,
  ): { readonly number: number; readonly value: Uint8Array } {
    const number = this.next++
    if (number === this.wasRead.length) this.grow()
    const value = Buffer.alloc(bytes)
    value.writeDoubleBE(intendedMs, 0)
    value.writeUInt32BE(number, 8)
    return { number, value }
  }

  acked(number: number): void {
    this.acknowledged[number] = 1
    this.acks++
  }

  /** When it should have been sent. */
  read(key: string, value: Uint8Array): number {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    const number = bytes.readUInt32BE(8)
    if (number <= (this.lastOfKey.get(key) ?? -1)) this.misordered++
    else this.lastOfKey.set(key, number)
    if (this.wasRead[number] === 0) this.reads++
    this.wasRead[number] = 1
    return bytes.readDoubleBE(0)
  }

  /** Acknowledged, and not read until now. */
  get missing(): number {
    let missing = 0
    for (let i = 0; i < this.next; i++) {
      if (this.acknowledged[i] === 1 && this.wasRead[i] === 0) missing++
    }
    return missing
  }

  private grow(): void {
    const size = 2 * this.wasRead.length
    const acknowledged = new Uint8Array(size)
    acknowledged.set(this.acknowledged)
    this.acknowledged = acknowledged
    const wasRead = new Uint8Array(size)
    wasRead.set(this.wasRead)
    this.wasRead = wasRead
  }
}

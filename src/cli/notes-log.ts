// What the SDK would log, as a person at a prompt wants it: warnings and errors in a sentence, nothing else. One sentence
// that comes again and again (a broker that cannot be reached) is said once.

import type { Output } from './output.ts'

export class NotesLog {
  private readonly out: Output
  private last = ''

  constructor(out: Output) {
    this.out = out
  }

  debug(): void {}
  info(): void {}
  warn(message: string): void {
    if (message !== this.last) this.out.note(message)
    this.last = message
  }
  error(message: string): void {
    this.warn(message)
  }
  child(): NotesLog {
    return this
  }
}

// The pure folders compile with `types: []`, so that Node's and the DOM's globals are out of reach.
// These few are part of every JavaScript runtime and touch neither time, chance nor IO.

declare class TextEncoder {
  encode(text: string): Uint8Array<ArrayBuffer>
  encodeInto(text: string, into: Uint8Array): { read: number; written: number }
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean })
  decode(bytes: Uint8Array): string
}
interface AbortSignal {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}
declare function queueMicrotask(run: () => void): void

// `assert` is for what we promised ourselves: it stays on in production, and a failure is a bug.
// What the world does (a bad frame, a full disk) is an EastGuardError instead: see errors.ts.

export class AssertionFailed extends Error {
  override readonly name: string = 'AssertionFailed'
}

export function assert(condition: unknown, promise: string): asserts condition {
  if (!condition) throw new AssertionFailed(promise)
}

/** The end of an exhaustive `switch`: a compile error when a case is missing, a crash if one gets here. */
export function unreachable(value: never): never {
  throw new AssertionFailed(`unreachable: ${JSON.stringify(value)}`)
}

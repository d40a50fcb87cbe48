// Real time, for what runs in processes of its own: tests that live in a simulated world have its clock.

/** How often is looked whether something has come true. */
const LOOK_MS = 5

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Rejects when it has not come true by then. */
export async function within(
  ms: number,
  what: string,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + ms
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${ms} ms`)
    await pause(LOOK_MS)
  }
}

/** For people. */
export function secondsSince(beganMs: number): string {
  return ((performance.now() - beganMs) / 1000).toFixed(1)
}

// Shortens a list that makes something fail, by leaving out ever smaller pieces while it still fails (Zeller's ddmin,
// "Simplifying and isolating failure-inducing input", 2002, without the complements). The result is minimal in that no
// single item can be left out.

/** `fails` must hold for `items`. */
export async function shrink<T>(
  items: readonly T[],
  fails: (items: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  let kept = items
  let size = Math.ceil(kept.length / 2)
  while (size >= 1 && kept.length > 0) {
    let removed = false
    for (let at = 0; at < kept.length; ) {
      const shorter = [...kept.slice(0, at), ...kept.slice(at + size)]
      if (await fails(shorter)) {
        kept = shorter
        removed = true
      } else {
        at += size
      }
    }
    if (size === 1 && !removed) break
    if (size > 1) size = Math.ceil(size / 2)
  }
  return kept
}

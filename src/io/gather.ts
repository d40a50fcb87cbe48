// Fewer, larger buffers for one vectored write.
//
//   in    [41 B][19 B][60 KiB][19 B][230 B][1 MiB]
//   out   [ 60 B    ][60 KiB][ 249 B     ][1 MiB]
//
// A buffer in a vectored write costs a native handle, a slot in the kernel's list and, past 1,024 of them, another
// system call, which on a file opened for durable writes is another wait for the disk. Copying a few hundred bytes
// costs less than any of these, so small neighbours are joined; large ones go as they are. The limit grows with the
// total so that what comes out never exceeds one system call's list.

/** Buffers below this are copied into their neighbours. */
const JOIN_BELOW_BYTES = 4096
/** At most this many large buffers, with as many joined runs between them: within the kernel's 1,024. */
const LARGE_BUFFERS_MAX = 500

/** The same bytes in at most 1,001 buffers. May return `buffers` itself; never changes it. */
export function gather(buffers: readonly Uint8Array[]): readonly Uint8Array[] {
  if (buffers.length <= 1) return buffers
  let total = 0
  for (const buffer of buffers) total += buffer.length
  const joinBelow = Math.max(JOIN_BELOW_BYTES, Math.ceil(total / LARGE_BUFFERS_MAX))
  const joined: Uint8Array[] = []
  let from = 0
  while (from < buffers.length) {
    const first = buffers[from] as Uint8Array
    let to = from + 1
    let length = first.length
    if (length < joinBelow) {
      for (; to < buffers.length; to++) {
        const next = (buffers[to] as Uint8Array).length
        if (next >= joinBelow) break
        length += next
      }
    }
    if (to === from + 1) joined.push(first)
    else joined.push(copyRun(buffers, from, to, length))
    from = to
  }
  return joined
}

function copyRun(
  buffers: readonly Uint8Array[],
  from: number,
  to: number,
  length: number,
): Uint8Array {
  const run = Buffer.allocUnsafe(length)
  let at = 0
  for (let i = from; i < to; i++) {
    const buffer = buffers[i] as Uint8Array
    run.set(buffer, at)
    at += buffer.length
  }
  return run
}

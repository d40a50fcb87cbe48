// Who is to hear when an abort signal fires. A caller may share one signal among any number of calls, and a listener of
// its own for each would cost time in the square of them: an event target looks through all its listeners to take one
// off. So a signal has one listener here, and a set behind it, and none once nobody waits.

export interface Abortable {
  aborted(signal: AbortSignal): void
}

interface Watch {
  readonly waiting: Set<Abortable>
  readonly listener: () => void
}

const watches = new WeakMap<AbortSignal, Watch>()

/** `who` hears when the signal fires, unless it is unwatched before. The signal must not have fired yet. */
export function watchAbort(signal: AbortSignal, who: Abortable): void {
  const watch = watches.get(signal) ?? begin(signal)
  watch.waiting.add(who)
}

export function unwatchAbort(signal: AbortSignal, who: Abortable): void {
  const watch = watches.get(signal)
  if (watch === undefined) return
  watch.waiting.delete(who)
  if (watch.waiting.size > 0) return
  watches.delete(signal)
  signal.removeEventListener('abort', watch.listener)
}

function begin(signal: AbortSignal): Watch {
  const waiting = new Set<Abortable>()
  const listener = (): void => {
    watches.delete(signal)
    for (const who of waiting) who.aborted(signal)
  }
  const watch = { waiting, listener }
  watches.set(signal, watch)
  signal.addEventListener('abort', listener, { once: true })
  return watch
}

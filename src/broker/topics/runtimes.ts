// What this broker runs for each topic, found by the sixteen bytes of its id as they lie in a request: no string is made for
// a produce. An id begins with the hash of the name (model/shards.ts), which serves here too; topics that share it form a chain.

import { getU32 } from '../../base/bytes.ts'
import type { TopicId } from '../../model/ids.ts'
import type { TopicRuntime } from './runtime.ts'

export class TopicRuntimes {
  private readonly byId = new Map<TopicId, TopicRuntime>()
  private readonly byHead = new Map<number, TopicRuntime[]>()

  get(id: TopicId): TopicRuntime | undefined {
    return this.byId.get(id)
  }

  all(): IterableIterator<TopicRuntime> {
    return this.byId.values()
  }

  /** The topic whose id lies at `at` in `bytes`. */
  find(bytes: Uint8Array, at: number): TopicRuntime | undefined {
    const chain = this.byHead.get(getU32(bytes, at) | 0)
    if (chain === undefined) return undefined
    for (const runtime of chain) if (sameId(runtime.idBytes, bytes, at)) return runtime
    return undefined
  }

  add(runtime: TopicRuntime): void {
    this.byId.set(runtime.topic.topicId, runtime)
    const head = getU32(runtime.idBytes, 0) | 0
    const chain = this.byHead.get(head)
    if (chain === undefined) this.byHead.set(head, [runtime])
    else chain.push(runtime)
  }

  remove(runtime: TopicRuntime): void {
    this.byId.delete(runtime.topic.topicId)
    const head = getU32(runtime.idBytes, 0) | 0
    const rest = (this.byHead.get(head) ?? []).filter((other) => other !== runtime)
    if (rest.length === 0) this.byHead.delete(head)
    else this.byHead.set(head, rest)
  }
}

function sameId(id: Uint8Array, bytes: Uint8Array, at: number): boolean {
  for (let i = 4; i < 16; i++) if (id[i] !== bytes[at + i]) return false
  return true
}

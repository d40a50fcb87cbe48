// One bit of a sealed segment's file turns over on one replica, as disks do it: nobody is told.

import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { inspectFile } from '../../../src/app/inspect.ts'
import type { Prng } from '../../../src/base/prng.ts'
import { HEADER_PAGE_BYTES } from '../../../src/storage/segment/format.ts'
import { rangeDir } from '../../../src/storage/segment/paths.ts'
import type { LocalBroker, LocalCluster } from '../../support/local-cluster.ts'
import { pause } from '../../support/time.ts'
import { logFile } from './copies.ts'
import { placesOf } from './places.ts'

const LOOK_MS = 200
const SOME_MS = 60_000
const LAST_BYTES = 64

/** A file of a settled segment that `broker` has; waits for one. */
export async function settledFile(
  cluster: LocalCluster,
  topics: readonly string[],
  broker: LocalBroker,
  random: Prng,
): Promise<string> {
  const files = await settledFiles(cluster, topics, broker)
  return files[random.below(files.length)] as string
}

/** In its last entries: the headers of page and blocks are read at a start only, from an index. Which byte it was is told. */
export async function flipBit(path: string, random: Prng): Promise<string> {
  const file = await open(path, 'r+')
  try {
    const { size } = await file.stat()
    const at = size - 1 - random.below(Math.min(LAST_BYTES, size - HEADER_PAGE_BYTES))
    const bytes = new Uint8Array(1)
    await file.read(bytes, 0, 1, at)
    bytes[0] = (bytes[0] as number) ^ (1 << random.below(8))
    await file.write(bytes, 0, 1, at)
    await file.sync()
    return `byte ${at} of ${size}`
  } finally {
    await file.close()
  }
}

/** Every byte of it checks. It may be missing for a moment, while it is repaired. */
export async function isWhole(path: string): Promise<boolean> {
  try {
    const found = await inspectFile(path, false)
    return found.kind === 'segment' && found.segment.fault === undefined
  } catch {
    return false
  }
}

async function settledFiles(
  cluster: LocalCluster,
  topics: readonly string[],
  broker: LocalBroker,
): Promise<readonly string[]> {
  const deadline = performance.now() + SOME_MS
  for (;;) {
    const places = await placesOf(cluster, topics)
    const node = places.info.brokers.find(
      ({ displayName, state }) => displayName === broker.name && state === 'alive',
    )?.nodeId
    const found: string[] = []
    for (const { name, topicId, ranges } of places.topics) {
      for (const { range, segments } of ranges) {
        for (const { segment, digest, endEntry, replicas } of segments) {
          if (node === undefined || !replicas.includes(node)) continue
          if ((digest ?? '') === '' || (endEntry ?? 0) === 0) continue
          const dir = join(broker.dataDir, rangeDir(name, { topicId, range, segment }))
          const path = await logFile(dir, segment)
          if (path !== undefined) found.push(path)
        }
      }
    }
    if (found.length > 0) return found
    if (performance.now() > deadline) throw new Error(`${broker.name} has no settled segment`)
    await pause(LOOK_MS)
  }
}

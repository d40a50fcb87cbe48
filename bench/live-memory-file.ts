import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Where a process says what lives in it. */
export function liveMemoryFile(pid: number): string {
  return join(tmpdir(), `eastguard-bench-live-${pid}`)
}

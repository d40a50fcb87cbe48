// Removal in two steps: a rename into trash/, synced, takes something away as a whole; what is in trash/ is then removed at
// leisure, by whoever comes next when a crash was faster.

import { type Disk, DiskError } from '../ports/disk.ts'
import { directoryOf } from './checked-file.ts'
import { listOrNothing } from './recovery/on-disk.ts'

export const TRASH_DIR = 'trash'

export class Trash {
  private readonly disk: Disk
  private number = 0

  constructor(disk: Disk) {
    this.disk = disk
  }

  /** At start: makes the directory and removes what a crash left in it. */
  async empty(): Promise<void> {
    await this.disk.makeDir(TRASH_DIR)
    for (const entry of await listOrNothing(this.disk, TRASH_DIR)) {
      await this.disk.remove(`${TRASH_DIR}/${entry.name}`)
    }
    await this.disk.syncDir(TRASH_DIR)
  }

  /**
   * All of `paths`, which lie in one directory and need not be there, are gone for ever and their space is free when it
   * resolves.
   */
  async remove(paths: readonly string[]): Promise<void> {
    const moved: string[] = []
    for (const path of paths) {
      const to = `${TRASH_DIR}/${++this.number}`
      if (await this.moved(path, to)) moved.push(to)
    }
    if (moved.length === 0) return
    await this.disk.syncDir(TRASH_DIR)
    await this.disk.syncDir(directoryOf(paths[0] as string))
    for (const path of moved) await this.disk.remove(path)
  }

  private async moved(from: string, to: string): Promise<boolean> {
    try {
      await this.disk.rename(from, to)
      return true
    } catch (error) {
      if (error instanceof DiskError && error.fault === 'not-found') return false
      throw error
    }
  }
}

// A bare descriptor: fs/promises' FileHandle would add an object with a finaliser and a queue to every file.

import fs from 'node:fs'
import { diskError } from './faults.ts'

export function openFd(path: string, flags: number, name: string): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.open(path, flags, 0o666, (error, fd) => {
      if (error) reject(diskError('open', name, error))
      else resolve(fd)
    })
  })
}

// The exclusive right to a data directory, given back by the operating system when its holder dies, however it dies.
//
// Node offers no file locks. What the kernel does give away exclusively, and takes back at the death of the process, is
// a socket name. The name comes from the lock file's device and inode, so that every path to the same directory leads to
// the same name:
//
//   lock file ── stat ──> device:inode ── listen on the abstract socket "eastguard-<device>-<inode>"
//                                           EADDRINUSE: somebody holds it, in this process or another
//
// Rejected: a file with a process id in it. It outlives its process, and every way to take over a stale one without file
// locks has a moment in which two processes believe that they won. Abstract socket names belong to a network namespace,
// so two containers that mount one directory do not see each other's: for them the file also bears the holder's
// identity (boot id, process id and its start time), which the holder checks in /proc. Elsewhere than on Linux, where
// there are no abstract names, the socket is a file in the temporary directory, whose staleness connecting reveals.

import fs from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DiskError, type DiskLock } from '../../ports/disk.ts'
import { diskError, errorCode } from './faults.ts'

export async function takeLock(path: string, name: string): Promise<DiskLock> {
  const handle = await fs.open(path, 'a+').catch((cause: unknown) => {
    throw diskError('open', name, cause)
  })
  try {
    const { dev, ino } = await handle.stat()
    const server = await listen(`eastguard-${dev}-${ino}`, name)
    try {
      const holder = await fs.readFile(path, 'utf8')
      const me = await identity(process.pid)
      if (holder !== '' && holder !== me && (await lives(holder))) throw locked(name, holder)
      await handle.truncate(0)
      await handle.write(me)
    } catch (error) {
      await closed(server)
      throw error
    }
    return {
      release: async () => {
        await fs.truncate(path, 0).catch(() => undefined)
        await closed(server)
      },
    }
  } finally {
    await handle.close()
  }
}

function locked(name: string, holder: string): DiskError {
  const who = holder === '' ? 'another process' : `process ${holder.split(' ')[0]}`
  return new DiskError('locked', name, `${name} is held by ${who}`)
}

async function listen(socketName: string, name: string): Promise<Server> {
  const abstract = process.platform === 'linux'
  const address = abstract ? `\0${socketName}` : join(tmpdir(), `${socketName}.sock`)
  try {
    return await tryListen(address)
  } catch (error) {
    if (errorCode(error) !== 'EADDRINUSE') throw diskError('lock', name, error)
    if (abstract || (await answers(address))) throw locked(name, '')
    await fs.rm(address, { force: true })
    return await tryListen(address).catch(() => {
      throw locked(name, '')
    })
  }
}

function tryListen(address: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', reject)
    server.listen(address, () => {
      server.unref()
      resolve(server)
    })
  })
}

function answers(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address, () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
  })
}

/** "<pid> <start time> <boot id>"; start time and boot id are empty where the system does not tell. */
async function identity(pid: number): Promise<string> {
  const boot = await fs.readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  const stat = await fs.readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The second field is the program's name in brackets and may hold spaces; the start time is field 22.
  const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  return `${pid} ${started} ${boot.trim()}`
}

async function lives(holder: string): Promise<boolean> {
  const [pid, started] = holder.split(' ')
  if (started === undefined || started === '') return false
  return (await identity(Number(pid))) === holder
}

// One process per data directory, without flock (Node has none).
//
// What must be free when its owner dies, however it dies, must belong to the kernel. A listening Unix socket does:
// it answers as long as its process lives and refuses from the instant it is dead, whatever became of process
// numbers, clocks or containers. A connection is therefore the test whether an owner lives. (A socket in the file
// system rather than Linux's abstract ones, because those are per network namespace, and two containers that share a
// volume must exclude each other.)
//
//   lock/0        a plain file: nobody's
//   lock/7        the socket of the 7th owner; refuses connections: it is dead
//   lock/8        the socket of the 8th owner; answers: the lock is taken
//   lock/.x3f9    somebody about to become an owner
//
// A socket outlives its owner as a name, and taking over a dead name by "look, remove, create" would be a race: two
// may look, and the slower removes what the faster created. So names are never taken over. The lock belongs to the
// greatest number; who finds it dead makes the next number. That is atomic, because link(2) refuses an existing name
// and what is linked is listening already, so that no name is ever seen before it answers.
//
// One hole is left: having seen 7 dead, a slow contender might link 8 long after others had made 8, 9 and 10 and
// tidied up to 9. Therefore owners remove old numbers in ascending order, and who has linked n looks whether the very
// n-1 that it found dead (the same inode of the same instant) is still there. If it is, then n was never removed, so
// nobody can have made it before, and nobody can make n+1 while n answers. If it is not, the link is undone and all
// begins again. The greatest number is never removed.
//
// Not covered: file systems shared between machines, where a socket of another machine looks dead.

import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DiskError, type DiskLock } from '../../ports/disk.ts'
import { diskError, errorCode } from './faults.ts'

const ATTEMPTS_MAX = 100
/** Socket addresses hold 104 bytes on macOS, 108 on Linux, with a zero at the end. */
const SOCKET_PATH_BYTES_MAX = 100
/** How long the owner has to say its process number; only the message depends on it. */
const WHO_TIMEOUT_MS = 500

/** `dir` on the file system; `path` is its name in messages. */
export async function takeLock(dir: string, path: string): Promise<DiskLock> {
  try {
    return await contend(dir, path)
  } catch (error) {
    if (error instanceof DiskError || errorCode(error) === undefined) throw error
    throw diskError('lock', path, error)
  }
}

async function contend(dir: string, path: string): Promise<DiskLock> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const numbers = await listNumbers(dir)
    const greatest = numbers.at(-1)
    if (greatest === undefined) {
      await begin(dir)
      continue
    }
    const predecessor = await identity(dir, greatest)
    const state = greatest === 0 ? 'dead' : await probe(dir, greatest)
    if (state === 'gone') continue
    if (state !== 'dead') {
      throw new DiskError('locked', path, `cannot lock ${path}: it is held by ${state.owner}`)
    }
    const server = await claim(dir, greatest + 1, predecessor)
    if (server === undefined) continue
    await tidy(dir, greatest + 1)
    return { release: () => close(server) }
  }
  throw new DiskError('locked', path, `cannot lock ${path}: too many others try at the same time`)
}

/** Ascending. Empty when the directory is not there or has no numbers yet. */
async function listNumbers(dir: string): Promise<number[]> {
  const names = await fs.readdir(dir).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  })
  return names
    .filter((name) => /^\d{1,15}$/.test(name))
    .map(Number)
    .sort((a, b) => a - b)
}

/** Makes the directory with lock/0 in it in one step: a rename goes through only onto nothing or an empty directory. */
async function begin(dir: string): Promise<void> {
  const fresh = await fs.mkdtemp(`${dir}-`)
  try {
    await fs.writeFile(join(fresh, '0'), '')
    await fs.rename(fresh, dir)
  } catch (error) {
    await fs.rm(fresh, { recursive: true, force: true })
    const code = errorCode(error)
    // Another was faster.
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
  }
}

/** Tells a name from a later one of the same number. */
async function identity(dir: string, number: number): Promise<string> {
  try {
    const stats = await fs.lstat(join(dir, String(number)), { bigint: true })
    return `${stats.ino}/${stats.mtimeNs}`
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return 'gone'
    throw error
  }
}

type Owner = 'dead' | 'gone' | { readonly owner: string }

async function probe(dir: string, number: number): Promise<Owner> {
  return onSocketPath(dir, String(number), (socketPath) => {
    return new Promise<Owner>((resolve, reject) => {
      let who = ''
      const socket = net.connect(socketPath)
      const alive = (): void => {
        socket.destroy()
        resolve({ owner: who === '' ? 'another process' : `process ${who}` })
      }
      socket.setEncoding('latin1')
      socket.setTimeout(WHO_TIMEOUT_MS, alive)
      socket.on('data', (text: string) => {
        who = (who + text).slice(0, 20)
      })
      socket.on('end', alive)
      socket.on('error', (error) => {
        const code = errorCode(error)
        if (code === 'ECONNREFUSED') resolve('dead')
        else if (code === 'ENOENT') resolve('gone')
        // A queue that is full, or an owner that closed just now: it was alive a moment ago.
        else if (code === 'EAGAIN' || code === 'ECONNRESET' || code === 'EPIPE') alive()
        else reject(error)
      })
    })
  })
}

/** The listening socket, now bearing the number; undefined when another was faster. */
async function claim(
  dir: string,
  number: number,
  predecessor: string,
): Promise<net.Server | undefined> {
  const temporary = `.${randomBytes(6).toString('hex')}`
  const server = net.createServer((socket) => {
    socket.on('error', () => undefined)
    socket.end(String(process.pid))
  })
  server.unref()
  try {
    await onSocketPath(dir, temporary, (socketPath) => listen(server, socketPath))
    await fs.link(join(dir, temporary), join(dir, String(number)))
  } catch (error) {
    await close(server)
    const code = errorCode(error)
    // EEXIST: the number is taken. ENOENT: the new owner has swept our temporary name away.
    if (code === 'EEXIST' || code === 'ENOENT') return undefined
    throw error
  } finally {
    await fs.rm(join(dir, temporary), { force: true })
  }
  if (predecessor !== 'gone' && (await identity(dir, number - 1)) === predecessor) return server
  await fs.rm(join(dir, String(number)), { force: true })
  await close(server)
  return undefined
}

/** Removes what is older than the owner's number, in ascending order, and names that never became owners. */
async function tidy(dir: string, owned: number): Promise<void> {
  for (const name of await fs.readdir(dir)) {
    if (name.startsWith('.')) await fs.rm(join(dir, name), { force: true })
  }
  for (const number of await listNumbers(dir)) {
    if (number < owned) await fs.rm(join(dir, String(number)), { force: true })
  }
}

/** Runs `use` with a path to `dir/name` that is short enough for a socket address, by a symbolic link if need be. */
async function onSocketPath<T>(
  dir: string,
  name: string,
  use: (socketPath: string) => Promise<T>,
): Promise<T> {
  const direct = join(dir, name)
  if (Buffer.byteLength(direct) <= SOCKET_PATH_BYTES_MAX) return use(direct)
  const shortcut = await fs.mkdtemp(join(tmpdir(), 'eg-'))
  try {
    await fs.symlink(dirname(direct), join(shortcut, 'd'))
    return await use(join(shortcut, 'd', name))
  } finally {
    await fs.rm(shortcut, { recursive: true, force: true })
  }
}

function listen(server: net.Server, socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(socketPath, () => {
      server.off('error', reject)
      server.on('error', () => undefined)
      resolve()
    })
  })
}

function close(server: net.Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
  })
}

// What loopback TCP can do between two Node processes: the peer writes frames of one size as fast as they are taken, we
// count what arrives. Run as a program it is the peer: it connects to the port given and writes until it is ended.

import { fork } from 'node:child_process'
import { type AddressInfo, connect, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { pause } from '../../test/support/time.ts'

/** Bytes per second received. */
export async function probeLoopback(frameBytes: number, seconds: number): Promise<number> {
  let received = 0
  const server = createServer((socket) => {
    socket.on('data', (chunk) => {
      received += chunk.length
    })
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const peer = fork(fileURLToPath(import.meta.url), [String(port), String(frameBytes)])
  try {
    while (received === 0) await pause(10)
    await pause(300)
    const [bytes, at] = [received, performance.now()]
    await pause(seconds * 1000)
    return (received - bytes) / ((performance.now() - at) / 1000)
  } finally {
    peer.kill('SIGKILL')
    server.close()
  }
}

function write(port: number, frameBytes: number): void {
  const socket = connect(port, '127.0.0.1')
  const frame = Buffer.alloc(frameBytes, 0x5a)
  const fill = (): void => {
    while (socket.write(frame)) {}
  }
  socket.on('connect', fill).on('drain', fill)
  socket.on('error', () => process.exit(0)).on('close', () => process.exit(0))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  write(Number(process.argv[2]), Number(process.argv[3]))
}

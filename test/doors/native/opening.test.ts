import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { NativeDoor } from '../../../src/doors/native/door.ts'
import { systemClock } from '../../../src/io/clock/system-clock.ts'
import { nodeStreams } from '../../../src/io/tcp/node-streams.ts'
import { simMetrics } from '../../../src/sim/ports/metrics.ts'
import { SETTINGS } from '../../broker/support/harness.ts'

test('whoever comes before there is a broker to serve is turned away at once, and the port is taken', async () => {
  const clock = systemClock({ keepAlive: false })
  const ports = { streams: nodeStreams, clock, metrics: simMetrics() }
  const door = new NativeDoor(ports, SETTINGS)
  const { port } = await door.listen({ host: '127.0.0.1', port: 0 })
  const socket = connect(port, '127.0.0.1')
  socket.resume()
  await new Promise((resolve) => socket.once('close', resolve).once('error', () => undefined))
  await assert.rejects(
    nodeStreams.listen({ host: '127.0.0.1', port }, () => undefined),
    {
      message: /EADDRINUSE/,
    },
  )
  await door.stop(0)
  const again = await nodeStreams.listen({ host: '127.0.0.1', port }, () => undefined)
  await again.close()
  await door.stop(0)
})

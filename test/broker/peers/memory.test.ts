// Whom brokers have met, and that an older copy of one is not let in and falls silent.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newestStart } from '../../../src/model/starts.ts'
import { idOf, Memory, Net, startNumber, startsTo } from './support.ts'

describe('a broker that is met', () => {
  it('is remembered by whom it dials, and by who dials it', async () => {
    const net = new Net(1)
    const a = await net.start('a', { bootCount: 3 })
    const b = await net.start('b', { bootCount: 5 })
    a.send(b, 1)
    await net.until('it came', () => b.numbersFrom(a).length === 1)
    assert.deepEqual(b.memory.met(a.id), startNumber(3))
    assert.deepEqual(a.memory.met(b.id), startNumber(5))
  })

  it('is greeted only when that is kept, and others do not wait for it', async () => {
    const net = new Net(2)
    const memory = new Memory()
    const a = await net.start('a')
    const b = await net.start('b', { memory })
    const c = await net.start('c')
    c.send(b, 1)
    await net.until('it came', () => b.numbersFrom(c).length === 1)
    let kept = (): void => {}
    memory.keep = () => new Promise((resolve) => (kept = resolve))
    a.send(b, 1)
    await net.run(200)
    assert.deepEqual(memory.met(a.id), startNumber(1))
    assert.equal(a.peers.linked(b.id), false)
    c.send(b, 2)
    await net.until('it came', () => b.numbersFrom(c).length === 2)
    kept()
    await net.until('it came', () => b.numbersFrom(a).length === 1)
    // It is no news any more.
    memory.keep = () => assert.fail('nothing is to be kept')
    a.process.kill()
    const again = await net.start('a')
    again.send(b, 7)
    await net.until('it came', () => b.numbersFrom(again).length === 2)
  })

  it('is not let in when that cannot be kept, and comes again', async () => {
    const net = new Net(3)
    const memory = new Memory()
    const a = await net.start('a')
    const b = await net.start('b', { memory })
    memory.keep = () => {
      memory.starts.clear()
      return Promise.reject(new Error('the disk is full'))
    }
    a.send(b, 1)
    await net.run(200)
    assert.equal(a.peers.linked(b.id), false)
    assert.equal(await b.metric('connections'), 0)
    assert.ok(b.log.some((line) => line.endsWith('cannot be kept: the disk is full')))
    assert.deepEqual(a.refusedBy, [])
    memory.keep = () => Promise.resolve()
    await net.until('it is let in', () => a.send(b, 2) && b.numbersFrom(a).length > 0)
  })

  it('is refused when a later start was met while its own was being kept', async () => {
    const net = new Net(4)
    const memory = new Memory()
    const b = await net.start('b', { memory })
    const kept: (() => void)[] = []
    memory.keep = () => new Promise((resolve) => kept.push(resolve))
    const old = await net.start('a', { bootCount: 4 })
    old.send(b, 1)
    await net.until('the first is being kept', () => kept.length === 1)
    memory.starts.set(old.id, startNumber(5))
    kept[0]?.()
    await net.until('it is refused', () => old.refusedBy.length === 1)
    assert.deepEqual(b.received, [])
  })
})

describe('an older copy of a broker', () => {
  const copies = {
    'that is behind': startsTo(4),
    'that has come as far by itself': startsTo(5, 5, 1),
    'that has come further by itself': startsTo(20, 5, 1),
  }
  for (const [what, starts] of Object.entries(copies)) {
    it(`${what} is refused, told who refuses it, and silent from then on`, async () => {
      const net = new Net(5)
      const memory = new Memory()
      memory.starts.set(idOf('a'), startNumber(5))
      const b = await net.start('b', { memory })
      const c = await net.start('c')
      const a = await net.start('a', { starts })
      a.send(c, 1)
      c.send(a, 1)
      await net.until('others have not met it', () => c.numbersFrom(a).length === 1)
      await net.until('others reach it', () => a.numbersFrom(c).length === 1)
      a.send(b, 1)
      await net.until('it is refused', () => a.refusedBy.length > 0)
      assert.deepEqual(a.refusedBy, [b.id])
      assert.equal(a.send(c, 2), false)
      assert.equal(a.send(b, 2), false)
      c.send(a, 2)
      await net.run(5000)
      assert.deepEqual(c.numbersFrom(a), [1])
      assert.deepEqual(a.numbersFrom(c), [1])
      assert.deepEqual(b.received, [])
      assert.deepEqual(a.refusedBy, [b.id])
      assert.deepEqual(memory.met(a.id), startNumber(5))
      await a.peers.stop()
    })

    it(`${what} is not taken for the broker by who dials it, either`, async () => {
      const net = new Net(6)
      const memory = new Memory()
      memory.starts.set(idOf('a'), startNumber(5))
      const b = await net.start('b', { memory })
      const a = await net.start('a', { starts })
      b.send(a, 1)
      await net.run(300)
      assert.deepEqual(b.events, [])
      assert.ok(b.log.some((line) => /another was met that is not before it/.test(line)))
      assert.deepEqual(a.received, [])
      assert.deepEqual(memory.met(a.id), startNumber(5))
    })
  }

  it('is let in where its starts reach back too little: the count decides', async () => {
    const net = new Net(7)
    const memory = new Memory()
    memory.starts.set(idOf('a'), startNumber(5))
    const b = await net.start('b', { memory })
    const starts = startsTo(60, 5, 1)
    const a = await net.start('a', { starts })
    a.send(b, 1)
    await net.until('it came', () => b.numbersFrom(a).length === 1)
    assert.deepEqual(memory.met(a.id), newestStart(starts))
  })
})

describe('a refusal for another reason', () => {
  it('makes nobody fall silent', async () => {
    const net = new Net(8)
    const a = await net.start('a')
    const b = await net.start('b')
    const c = await net.start('c')
    a.addresses.set(b.id, { host: 'c', port: 2923 })
    a.send(b, 1)
    await net.run(200)
    a.send(c, 1)
    await net.until('it came', () => c.numbersFrom(a).length === 1)
    assert.deepEqual(a.refusedBy, [])
  })
})

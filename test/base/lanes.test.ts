import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lanes } from '../../src/base/lanes.ts'

class Work {
  readonly begun: string[] = []
  private readonly ends = new Map<string, (error?: Error) => void>()

  of(name: string): () => Promise<string> {
    return () => {
      this.begun.push(name)
      return new Promise((resolve, reject) => {
        this.ends.set(name, (error) => (error === undefined ? resolve(name) : reject(error)))
      })
    }
  }

  async end(name: string, error?: Error): Promise<void> {
    this.ends.get(name)?.(error)
    await turn()
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('so many run at a time, and the others in the order in which they came', async () => {
  const lanes = new Lanes(2)
  const work = new Work()
  const all = ['a', 'b', 'c', 'd'].map((name) => lanes.run(work.of(name)))
  await turn()
  assert.deepEqual(work.begun, ['a', 'b'])
  await work.end('b')
  assert.deepEqual(work.begun, ['a', 'b', 'c'])
  for (const name of ['a', 'c', 'd']) await work.end(name)
  assert.deepEqual(await Promise.all(all), ['a', 'b', 'c', 'd'])
  void lanes.run(work.of('e'))
  void lanes.run(work.of('f'))
  void lanes.run(work.of('g'))
  await turn()
  assert.deepEqual(work.begun.slice(4), ['e', 'f'])
})

test('what is calm waits for what is urgent', async () => {
  const lanes = new Lanes(1)
  const work = new Work()
  void lanes.run(work.of('a'))
  void lanes.run(work.of('calm'), 'calm')
  void lanes.run(work.of('urgent'))
  for (const name of ['a', 'urgent', 'calm']) await work.end(name)
  assert.deepEqual(work.begun, ['a', 'urgent', 'calm'])
})

test('what fails makes room like anything else', async () => {
  const lanes = new Lanes(1)
  const work = new Work()
  const failing = assert.rejects(lanes.run(work.of('a')), /no space/)
  const next = lanes.run(work.of('b'))
  await turn()
  await work.end('a', new Error('no space'))
  await work.end('b')
  await failing
  assert.equal(await next, 'b')
})

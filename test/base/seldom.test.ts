import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Seldom } from '../../src/base/seldom.ts'

describe('what is told seldom', () => {
  it('is told at once, and then once in a while, with how often it was not', () => {
    const seldom = new Seldom(100, 10)
    assert.equal(seldom.next('a', 0), 0)
    assert.equal(seldom.next('a', 1), undefined)
    assert.equal(seldom.next('b', 1), 0)
    assert.equal(seldom.next('a', 99), undefined)
    assert.equal(seldom.next('a', 100), 2)
    assert.equal(seldom.next('a', 101), undefined)
    assert.equal(seldom.next('a', 1000), 1)
    assert.equal(seldom.next('a', 2000), 0)
  })

  it('is told no more often by whoever makes up names, and all are told again later', () => {
    const seldom = new Seldom(100, 10)
    const told = (nowMs: number): number => {
      const names = Array.from({ length: 1000 }, (_, i) => `name ${nowMs} ${i}`)
      return names.filter((name) => seldom.next(name, nowMs) !== undefined).length
    }
    assert.equal(told(0), 11)
    assert.equal(told(99), 0)
    assert.equal(seldom.next('name 0 3', 99), undefined)
    assert.equal(told(100), 11)
    assert.equal(seldom.next('a', 5000), 0)
    assert.equal(seldom.next('a', 5001), undefined)
  })
})

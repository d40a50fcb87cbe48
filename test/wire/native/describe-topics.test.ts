import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ByteWriter } from '../../../src/base/cursor.ts'
import type { TopicView } from '../../../src/model/metadata.ts'
import {
  DESCRIBE_BYTES_MAX,
  DESCRIBE_TOPICS_MAX,
  describeTopics,
} from '../../../src/wire/native/describe-topics.ts'
import {
  LENGTH_BYTES,
  readRequest,
  readResponse,
  requestFrame,
  responseFrame,
} from '../../../src/wire/native/header.ts'
import {
  briefTopicView,
  topicViewBytesMost,
  writeTopicView,
} from '../../../src/wire/native/topic-view.ts'
import { plain, topicArbitrary } from './messages.ts'

function answer(response: Parameters<typeof describeTopics.writeResponse>[1]): {
  readonly bytes: number
  readonly topics: readonly { readonly topic?: TopicView; readonly brief?: boolean }[]
} {
  const frame = responseFrame(describeTopics, 1, response)
  const { topics } = readResponse(describeTopics, frame.subarray(LENGTH_BYTES))
  return { bytes: frame.length, topics: topics.map((t) => ('topic' in t ? t : {})) }
}

/** A topic that has lived long: many segments, each with an offset for each of many partitions. */
function longLived(segments: number): TopicView {
  const [sample] = fc.sample(topicArbitrary, { numRuns: 1, seed: 7 })
  assert.ok(sample !== undefined)
  return {
    ...sample,
    logStartOffsets: Array.from({ length: 1000 }, () => 5),
    ranges: [
      {
        range: 0,
        state: 'active',
        firstPartition: 0,
        endPartition: 1000,
        parents: [],
        children: [],
        segments: Array.from({ length: segments }, (_, i) => ({
          segment: i + 1,
          state: 'open',
          replicas: [],
          firstOffsets: Array.from({ length: 1000 }, () => i),
          openedAtMs: i,
          digest: '',
        })),
      },
    ],
  }
}

describe('a description', () => {
  it('that is brief has what routing needs and nothing else', () => {
    fc.assert(
      fc.property(topicArbitrary, (topic) => {
        const [only] = answer({ topics: [{ topic, brief: true }] }).topics
        assert.equal(only?.brief, true)
        assert.deepEqual(plain(only.topic), plain(briefTopicView(topic)))
        assert.deepEqual(only.topic?.logStartOffsets, [])
        for (const [i, range] of (only.topic?.ranges ?? []).entries()) {
          const whole = topic.ranges[i]?.segments ?? []
          assert.equal(range.segments.length, Math.min(1, whole.length))
          assert.deepEqual(range.segments[0]?.replicas, whole.at(-1)?.replicas)
        }
      }),
      { numRuns: 40 },
    )
  })

  it('never outgrows a frame: what has no room is given briefly, and says so', () => {
    const topic = longLived(1500)
    const { bytes, topics } = answer({ topics: [{ topic }, { topic }, { topic }] })
    assert.ok(bytes < DESCRIBE_BYTES_MAX + 3 * 4096, `${bytes} bytes`)
    assert.deepEqual(
      topics.map((t) => t.brief),
      [false, true, true],
    )
  })

  it('takes no more bytes than was foretold', () => {
    fc.assert(
      fc.property(topicArbitrary, (topic) => {
        const w = new ByteWriter()
        writeTopicView(w, topic)
        assert.ok(w.size <= topicViewBytesMost(topic))
      }),
    )
  })

  it('of a name as long as a text may be still fits its error', () => {
    const name = 'x'.repeat(0xffff)
    const frame = responseFrame(describeTopics, 1, {
      topics: [{ error: 'UNKNOWN_TOPIC', message: `there is no topic '${name}'`, name }],
    })
    const [only] = readResponse(describeTopics, frame.subarray(LENGTH_BYTES)).topics
    assert.ok(only !== undefined && 'error' in only && only.name === name)
  })

  it('is not asked for of more topics than one request may name', () => {
    const names = Array.from({ length: DESCRIBE_TOPICS_MAX + 1 }, (_, i) => `t${i}`)
    const ask = (count: number): Uint8Array =>
      requestFrame(describeTopics, 1, 1, { names: names.slice(0, count) }).subarray(LENGTH_BYTES)
    readRequest(describeTopics, ask(DESCRIBE_TOPICS_MAX))
    assert.throws(() => readRequest(describeTopics, ask(DESCRIBE_TOPICS_MAX + 1)), {
      code: 'MALFORMED_REQUEST',
    })
  })
})

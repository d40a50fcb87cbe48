import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import type { BrokerInfo } from '../../src/client/api.ts'
import { nodeId } from '../../src/model/ids.ts'
import type { RangeView } from '../../src/model/metadata.ts'
import { Rig } from './rig.ts'

function broker(nodeNumber: number, state: BrokerInfo['state'] = 'alive'): BrokerInfo {
  return {
    nodeId: nodeId(String(nodeNumber).padStart(32, '0')),
    nodeNumber,
    displayName: `broker-${nodeNumber}`,
    host: '127.0.0.1',
    clientPort: 2921,
    state,
    role: 'member',
    hostLabel: '',
    rackLabel: '',
    shards: 1,
    leads: 1,
    version: '',
    diskTotalBytes: 0,
    diskFreeBytes: 0,
    diskFull: false,
  }
}

test('the number after create-topic is replicas, and what is not given is left to the broker', async () => {
  const rig = new Rig()
  assert.equal((await rig.run(['create-topic', 'a'])).code, 0)
  assert.deepEqual(rig.client.created[0]?.policy, {})
  await rig.run(['create-topic', 'b', '3', '--partitions', '6', '--if-not-exists'])
  assert.deepEqual(rig.client.created[1]?.policy, { replicationFactor: 3, partitions: 6 })
  assert.equal(rig.client.created[1]?.ifNotExists, true)
  await rig.run(['create-topic', 'c', '--ranges', '4'])
  assert.deepEqual(rig.client.created[2]?.policy, { ranges: 4, rangeMode: 'fixed' })
})

test('whoever makes a topic while brokers are down is told that it keeps fewer replicas, and how to change that', async () => {
  const rig = new Rig()
  const warned = async (...words: string[]): Promise<string> =>
    (await rig.run(['create-topic', ...words])).err
  rig.client.replicas = 2
  rig.client.brokers = [broker(1), broker(2, 'suspect'), broker(3, 'dead')]
  assert.match(
    await warned('a'),
    /warning: a has 2 replicas, as many as there are brokers without broker 3, .* For 3, when all are back: alter-topic a --config replication_factor=3 --config min_insync_replicas=2\n/,
  )
  for (const words of [
    ['b', '2'],
    ['c', '--config', 'replication_factor=2'],
    ['a', '--if-not-exists'],
  ]) {
    assert.doesNotMatch(await warned(...words), /warning/, words.join(' '))
  }
  rig.client.replicas = 3
  rig.client.brokers = [broker(1), broker(2), broker(3), broker(4, 'left')]
  assert.equal(await warned('d'), '')
  rig.client.replicas = 1
  rig.client.brokers = [broker(1), broker(2, 'left'), broker(3, 'dead')]
  assert.match(await warned('e'), /1 replica, .*without broker 2 and broker 3.* For 3/)
})

test('create-topic --if-not-exists says whether it made the topic', async () => {
  const rig = new Rig()
  const create = (...more: string[]): ReturnType<Rig['run']> =>
    rig.run(['create-topic', 'a', '--partitions', '1', '--if-not-exists', ...more])
  assert.equal((await create()).out, 'created a: 1 partition, 1 replica\n')
  const again = await create()
  assert.equal(again.code, 0)
  assert.equal(again.out, 'a exists already with an equal policy: 1 partition, 1 replica\n')
  const created = async (name: string): Promise<unknown> =>
    (
      JSON.parse((await rig.run(['create-topic', name, '--json'])).out) as {
        readonly created: boolean
      }
    ).created
  assert.deepEqual([await created('a'), await created('b')], [false, true])
})

test('policy values are read in the forms that people write', async () => {
  const rig = new Rig()
  const config = ['retention_ms=3d', 'segment_bytes=1MiB', 'tier=low', 'retention_bytes=-1']
  await rig.run(['create-topic', 'a', ...config.flatMap((setting) => ['--config', setting])])
  assert.deepEqual(rig.client.created[0]?.policy, {
    retentionMs: 3 * 86_400_000,
    segmentBytes: 1_048_576,
    tier: 'low',
    retentionBytes: -1,
  })
  for (const bad of ['retention=1', 'tier=huge', 'segment_ms', 'segment_entries=many']) {
    const { code, err } = await rig.run(['create-topic', 'x', '--config', bad])
    assert.equal(code, 2)
    assert.match(err, new RegExp(`USAGE: --config ${bad}`))
  }
})

test('help of a command inside another is its own page', async () => {
  const { code, out } = await new Rig().run(['help', 'perf', 'produce'])
  assert.equal(code, 0)
  assert.match(out, /^Usage: eg-cli perf produce /)
})

test('help says that the number is replicas and what users of Kafka want', async () => {
  const { code, out } = await new Rig().run(['help', 'create-topic'])
  assert.equal(code, 0)
  assert.match(out, /Users of Kafka .* --partitions 3/s)
})

test('what is published is consumed; --raw writes values and newlines only', async () => {
  const rig = new Rig()
  await rig.run(['create-topic', 't'])
  assert.match((await rig.run(['publish', 't', 'k', 'one'])).out, /partition 0 at offset 0/)
  await rig.run(['publish', 't', '', 'two'])
  assert.equal((await rig.run(['consume', 't', 'earliest', '--raw'])).out, 'one\ntwo\n')
  const { out } = await rig.run(['consume', 't'])
  assert.match(out, /^0:0 {2}2023-\S+ {2}k {2}one\n0:1 {2}\S+ {2}- {2}two\n$/)
  assert.equal(rig.client.consumed[0]?.stopAtEnd, true)
})

test('--json gives bytes that are not UTF-8 as base64, and records cannot steer a terminal', async () => {
  const rig = new Rig()
  await rig.run(['create-topic', 't'])
  await rig.run(['produce', 't'], Readable.from([Buffer.from([0xff, 10, 0x1b, 0x5b, 10])]))
  const lines = (await rig.run(['consume', 't', '--json'])).out.trim().split('\n')
  const values = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.equal(values[0]?.['value_base64'], '/w==')
  assert.equal(values[1]?.['value'], '\u001b[')
  assert.ok(!(await rig.run(['consume', 't'])).out.includes('\u001b'))
})

test('a count ends the command, and one that is not reached fails', async () => {
  const rig = new Rig()
  await rig.run(['create-topic', 't'])
  await rig.run(['produce', 't'], Readable.from(['a\nb\nc\nd\ne\n'].map((s) => Buffer.from(s))))
  const some = await rig.run(['consume', 't', 'earliest', '3', '--raw'])
  assert.deepEqual([some.code, some.out], [0, 'a\nb\nc\n'])
  const few = await rig.run(['consume', 't', 'earliest', '9', '--raw', '--timeout-ms', '20'])
  assert.deepEqual([few.code, few.out], [1, 'a\nb\nc\nd\ne\n'])
  assert.match(few.err, /TIMEOUT: 5 of 9 records/)
  assert.equal((await rig.run(['consume', 't', '--follow', '--timeout-ms', '20'])).code, 0)
})

test('where to begin: offset, time, latest; anything else is told', async () => {
  const rig = new Rig()
  await rig.run(['create-topic', 't'])
  const begun = async (...words: string[]): Promise<unknown> => {
    assert.equal((await rig.run(['consume', 't', ...words])).code, 0)
    return rig.client.consumed.at(-1)?.from
  }
  assert.deepEqual(await begun('@1700000000000'), { timestampMs: 1_700_000_000_000 })
  assert.deepEqual(await begun('@1970-01-01T00:00:01Z'), { timestampMs: 1000 })
  assert.deepEqual(await begun('latest'), 'latest')
  assert.deepEqual(await begun('--partition', '0', '--offset', '7'), { offset: 7 })
  for (const bad of [['yesterday'], ['@never'], ['--offset', '3']]) {
    assert.equal((await rig.run(['consume', 't', ...bad])).code, 2)
  }
})

test('produce keeps bytes, takes keys from fields, and names the line that has none', async () => {
  const rig = new Rig()
  await rig.run(['create-topic', 't'])
  const input = Readable.from([Buffer.from('a,b,c\n'), Buffer.from('d,e\n\nlast,x')])
  const failed = await rig.run(['produce', 't', '--key-field', '2', '--delimiter', ','], input)
  assert.equal(failed.code, 1)
  assert.match(failed.err, /line 3 has 1 field: /)
  const keys = rig.client.records.get('t')?.map(({ key }) => key?.toString())
  assert.deepEqual(keys, ['b'])
  const twice = await rig.run(['produce', 't', '--json'], Readable.from([Buffer.from('x\n\ny')]))
  assert.equal((JSON.parse(twice.out) as { records: number }).records, 3)
})

test('a topic is described as far as it is known while the broker that keeps its records is away', async () => {
  const rig = new Rig()
  await rig.run(['create-topic', 't'])
  rig.client.recordsAway = true
  const { code, out, err } = await rig.run(['describe-topic', 't'])
  assert.equal(code, 1)
  assert.match(out, /retention_ms/)
  assert.match(err, /^CONNECTION_FAILED: the brokers that lead 't' cannot be reached/)
})

test('failures say what, to what and what to do; as JSON for programs; codes tell them apart', async () => {
  const rig = new Rig()
  const plain = await rig.run(['describe-topic', 'none'])
  assert.deepEqual([plain.code, plain.out], [1, ''])
  assert.match(plain.err, /^UNKNOWN_TOPIC: there is no topic none\n {2}create it first/)
  const { err } = await rig.run(['describe-topic', 'none', '--json'])
  const { error } = JSON.parse(err) as { error: Record<string, unknown> }
  assert.deepEqual([error['code'], error['retriable']], ['UNKNOWN_TOPIC', false])
  const typo = await rig.run(['list-topic'])
  assert.equal(typo.code, 2)
  assert.match(typo.err, /Did you mean list-topics/)
})

test('a command that is missing or unknown is named, with those that there are', async () => {
  const rig = new Rig()
  const groups: [string[], RegExp][] = [
    [['perf'], /^USAGE: perf needs a command: use one of produce, consume\n/],
    [['perf', 'help', 'nope'], /^USAGE: there is no command 'nope': use one of produce, consume\n/],
    [['perf', 'nope'], /^USAGE: unknown command 'nope'/],
    [['help', 'perf', 'nope'], /^USAGE: there is no command 'nope': use one of produce, consume\n/],
    [['help', 'nope'], /^USAGE: there is no command 'nope': use one of create-topic, .*, perf\n/],
  ]
  for (const [words, wording] of groups) {
    const { code, out, err } = await rig.run(words)
    assert.deepEqual([code, out], [2, ''], words.join(' '))
    assert.match(err, wording)
  }
  const { code, out } = await rig.run(['help', 'perf'])
  assert.equal(code, 0)
  assert.match(out, /Usage: eg-cli perf/)
})

test('whoever removes a broker is told what goes with it', async () => {
  const rig = new Rig()
  const node = nodeId('ab'.repeat(16))
  rig.client.brokers = [{ ...broker(7), nodeId: node }]
  await rig.run(['create-topic', 't'])
  const empty = await rig.run(['remove-broker', '7', '--yes'])
  assert.match(empty.err, /broker 7 is alive and was not drained/)
  assert.doesNotMatch(empty.err, /records/)
  const topic = rig.client.topics.get('t')
  assert.ok(topic !== undefined)
  const range: RangeView = {
    range: 0,
    state: 'active',
    firstPartition: 0,
    endPartition: 1,
    segments: [{ segment: 1, state: 'open', replicas: [node], firstOffsets: [0], openedAtMs: 0 }],
    parents: [],
    children: [],
  }
  rig.client.topics.set('t', { ...topic, ranges: [range] })
  const full = await rig.run(['remove-broker', '7', '--yes'])
  assert.match(full.err, /records of 1 topic are kept by broker 7 alone/)
  assert.equal((await rig.run(['remove-broker', '7'])).code, 2)
  assert.deepEqual(rig.client.roles, ['removed', 'removed'])
})

test('nobody is asked where nobody can be: delete-topic needs --yes', async () => {
  const rig = new Rig()
  await rig.run(['create-topic', 't'])
  assert.equal((await rig.run(['delete-topic', 't'])).code, 2)
  assert.equal((await rig.run(['delete-topic', 't', '--yes'])).code, 0)
  assert.equal(rig.client.topics.size, 0)
})

test('a script runs every line, names the failing one, and its code is the first failure', async () => {
  const rig = new Rig()
  const { code, out, err } = await rig.script(
    `create-topic a\n\n# a comment\ndescribe-topic b\npublish a k "x y"\nit's\nconsume a --raw\nexit\nlist-topics\n`,
  )
  assert.equal(code, 1)
  assert.match(err, /UNKNOWN_TOPIC: line 4: /)
  assert.match(err, /USAGE: line 6: a ' is not closed/)
  assert.match(out, /x y\n$/)
  assert.equal(rig.client.closed, 1)
})

test('standard input that holds commands is not produced', async () => {
  const { code, err } = await new Rig().script('produce t\nsecond line\n')
  assert.equal(code, 2)
  assert.match(err, /standard input holds the commands/)
})

test('seeds are a list; a command may name its own', async () => {
  const rig = new Rig()
  await rig.run(['list-topics'])
  await rig.run(['--seeds', 'a:1, b:2', 'list-topics'])
  assert.deepEqual(rig.seeds, [['127.0.0.1:2921'], ['a:1', 'b:2']])
})

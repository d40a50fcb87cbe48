import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkLinearizable } from '../../../src/sim/linear/check.ts'
import type { Attempt, History, Operation, Outcome } from '../../../src/sim/linear/types.ts'
import {
  answerIn,
  anyIntent,
  distinctOperation,
  historyOf,
  NAME,
  orderOf,
  type Played,
  play,
  withProcesses,
} from './histories.ts'

const POLICY = { a: 1, b: 1 }
const CREATE: Operation = { kind: 'create', policy: POLICY, token: '', ifNotExists: false }
const DELETE: Operation = { kind: 'delete' }
const DESCRIBE: Operation = { kind: 'describe' }
const ABSENT: Outcome = { kind: 'absent' }

function alter(a: number): Operation {
  return { kind: 'alter', changes: { a } }
}

function described(topicId: string, a = 1): Outcome {
  return { kind: 'described', topicId, policy: { ...POLICY, a, further: 'not compared' } }
}

/** One at a time, by one process each, 10 ms apart. */
function inTurn(
  from: History,
  ...steps: readonly (readonly [Operation, Outcome] | readonly [Operation])[]
): History {
  let atMs = endMs(from)
  const attempts: Attempt[] = [...from]
  for (const [operation, outcome] of steps) {
    atMs += 10
    const last = { process: `late-${atMs}`, name: NAME, callMs: atMs, operation }
    if (outcome === undefined)
      attempts.push({ ...last, returnMs: undefined, outcome: { kind: 'unknown' } })
    else attempts.push({ ...last, returnMs: atMs + 5, outcome })
  }
  return attempts
}

function endMs(history: History): number {
  return history.reduce((end, { callMs, returnMs }) => Math.max(end, returnMs ?? callMs), 0)
}

function refused(history: History): string {
  const verdict = checkLinearizable(history)
  assert.ok(!verdict.ok, `${JSON.stringify(history)} has no order`)
  assert.equal(verdict.undecided, false)
  assert.equal(verdict.name, NAME)
  return verdict.explanation
}

function accepted(history: History): void {
  const verdict = checkLinearizable(history)
  assert.ok(verdict.ok, verdict.ok ? '' : verdict.explanation)
}

test('whatever order there was, the overlapping history is accepted', () => {
  fc.assert(
    fc.property(fc.array(anyIntent(30, 10), { maxLength: 50 }), (intents) => {
      accepted(historyOf(intents))
    }),
    { numRuns: 300 },
  )
})

test('short histories are judged as trying every order judges them', () => {
  let ordered = 0
  let total = 0
  const intents = fc.array(anyIntent(25, 20), { minLength: 2, maxLength: 7 })
  const swaps = fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 4 })
  const shifts = fc.array(fc.integer({ min: -60, max: 60 }), { minLength: 7, maxLength: 7 })
  fc.assert(
    fc.property(intents, swaps, shifts, (made, swapped, shifted) => {
      const history = mutated(historyOf(made), swapped, shifted)
      const expected = orderOf(history) !== undefined
      total++
      if (expected) ordered++
      const verdict = checkLinearizable(history)
      assert.equal(verdict.ok, expected, verdict.ok ? 'no order was expected' : verdict.explanation)
    }),
    { numRuns: 4000 },
  )
  assert.ok(
    ordered > total / 5 && ordered < (total * 4) / 5,
    `${ordered} of ${total} have an order`,
  )
})

/** Answers of operations of one kind change places, and operations move in time: it may have no order any more. */
function mutated(
  history: History,
  swaps: readonly (readonly [number, number])[],
  shifts: readonly number[],
): History {
  const attempts: Omit<Attempt, 'process'>[] = history.map((one, i) => {
    const ms = shifts[i] ?? 0
    const { returnMs } = one
    return {
      ...one,
      callMs: one.callMs + ms,
      returnMs: returnMs === undefined ? undefined : returnMs + ms,
    }
  })
  for (const [x, y] of swaps) {
    const a = attempts[x % attempts.length]
    const b = attempts[y % attempts.length]
    if (a === undefined || b === undefined || a.operation.kind !== b.operation.kind) continue
    if (a.returnMs === undefined || b.returnMs === undefined) continue
    const outcome = a.outcome
    attempts[x % attempts.length] = { ...a, outcome: b.outcome }
    attempts[y % attempts.length] = { ...b, outcome }
  }
  return withProcesses(attempts)
}

/** Histories in which all was answered, long before what a test puts behind them. */
const anyHistory = fc.array(anyIntent(15, 0), { maxLength: 30 }).map(play)

/** The topic is made if it is not there, so that there is one to be wrong about. */
function withTopic({ history, state }: Played): {
  readonly history: History
  readonly topicId: string
  readonly a: number
} {
  const { topic } = state
  if (topic !== undefined) {
    return { history, topicId: topic.topicId ?? '', a: topic.policy['a'] as number }
  }
  const made = inTurn(history, [CREATE, { kind: 'created', topicId: 'late' }])
  return { history: made, topicId: 'late', a: 1 }
}

const WRONG: Readonly<Record<string, (before: ReturnType<typeof withTopic>) => History>> = {
  'a description older than a completed alteration': ({ history, topicId, a }) =>
    inTurn(history, [alter(9), { kind: 'altered' }], [DESCRIBE, described(topicId, a)]),
  'an alteration that was answered and lost': ({ history, topicId, a }) =>
    inTurn(
      history,
      [alter(9), { kind: 'altered' }],
      [alter(8), { kind: 'altered', policy: { a: 8, b: 9 } }],
      [DESCRIBE, described(topicId, a)],
    ),
  'a second creation of a topic that is there': ({ history }) =>
    inTurn(history, [CREATE, { kind: 'created', topicId: 'second' }]),
  'a creation refused although the name was free': ({ history }) =>
    inTurn(history, [DELETE, { kind: 'deleted' }], [CREATE, { kind: 'taken' }]),
  'a deleted topic that is back': ({ history, topicId, a }) =>
    inTurn(history, [DELETE, { kind: 'deleted' }], [DESCRIBE, described(topicId, a)]),
  'a deleted topic that is back in the place of the new': ({ history, topicId }) =>
    inTurn(
      history,
      [DELETE, { kind: 'deleted' }],
      [CREATE, { kind: 'created', topicId: 'new' }],
      [DESCRIBE, described(topicId)],
    ),
  'two deletions of one topic': ({ history }) =>
    inTurn(history, [DELETE, { kind: 'deleted' }], [DELETE, { kind: 'deleted' }]),
  'a creation that was lost': ({ history }) => inTurn(history, [DESCRIBE, ABSENT]),
  'a topic that is not there for an alteration': ({ history }) =>
    inTurn(history, [alter(9), ABSENT]),
  'a creation that took effect twice': ({ history, topicId }) =>
    inTurn(
      history,
      [DELETE, { kind: 'deleted' }],
      [{ ...CREATE, token: 'z' }],
      [DESCRIBE, described('once')],
      [DELETE, { kind: 'deleted' }],
      [DESCRIBE, described(topicId === 'once' ? 'other' : 'twice')],
    ),
  'a description of another policy of the same id': ({ history, topicId }) =>
    inTurn(history, [DESCRIBE, described(topicId, 77)]),
}

for (const [what, mutate] of Object.entries(WRONG)) {
  test(`refused: ${what}`, () => {
    fc.assert(
      fc.property(anyHistory, (played) => void refused(mutate(withTopic(played)))),
      { numRuns: 60 },
    )
  })
}

test('an operation without an answer may take effect late, and once', () => {
  const made = inTurn([], [CREATE, { kind: 'created', topicId: 't' }], [alter(2)])
  accepted(inTurn(made, [DESCRIBE, described('t')], [DESCRIBE, described('t', 2)]))
  accepted(inTurn(made, [DESCRIBE, described('t')]))
  const flipped = inTurn(
    made,
    [DESCRIBE, described('t', 2)],
    [alter(3), { kind: 'altered' }],
    [DESCRIBE, described('t', 2)],
  )
  refused(flipped)
  accepted([...inTurn([], [alter(2)]), ...flipped])
})

test('a retry with the same token is answered as the first was, until the topic is gone', () => {
  const create: Operation = { ...CREATE, token: 'k' }
  const created: Outcome = { kind: 'created', topicId: 't', policy: POLICY }
  accepted(inTurn([], [create], [create, created], [create, created]))
  refused(inTurn([], [create, created], [create, { kind: 'taken' }]))
  refused(inTurn([], [create, created], [create, { kind: 'created', topicId: 'u' }]))
  refused(inTurn([], [{ ...create, token: 'other' }, created], [create, created]))
})

test('a process does one thing after another, even within a millisecond', () => {
  const common = { name: NAME, callMs: 5, returnMs: 5 }
  const create: Attempt = {
    ...common,
    process: 'a',
    operation: CREATE,
    outcome: { kind: 'created', topicId: 't' },
  }
  const look: Attempt = { ...common, process: 'a', operation: DESCRIBE, outcome: ABSENT }
  refused([create, look])
  accepted([look, create])
  accepted([create, { ...look, process: 'b' }])
})

test('what ended in the millisecond in which another began may have overlapped it', () => {
  const create = { name: NAME, process: 'a', callMs: 0, returnMs: 5, operation: CREATE }
  const look = { name: NAME, process: 'b', callMs: 5, returnMs: 9, operation: DESCRIBE }
  accepted([
    { ...create, outcome: { kind: 'created', topicId: 't' } },
    { ...look, outcome: ABSENT },
  ])
})

test('an id that was left behind never comes back, whoever may have made the topic anew', () => {
  const deleted = inTurn(
    [],
    [CREATE, { kind: 'created', topicId: 't' }],
    [DELETE, { kind: 'deleted' }],
  )
  refused(inTurn(deleted, [CREATE], [DESCRIBE, described('t')]))
  refused(inTurn(deleted, [CREATE, { kind: 'created', topicId: 't' }]))
  accepted(inTurn(deleted, [CREATE], [DESCRIBE, described('u')]))
})

test('a policy that only the condition of a creation names is compared with it', () => {
  const unlike: Operation = { kind: 'create', policy: { a: 5, b: 1 }, token: '', ifNotExists: true }
  const made = inTurn(
    [],
    [CREATE, { kind: 'created', topicId: 't' }],
    [alter(4), { kind: 'altered' }],
  )
  accepted(inTurn(made, [unlike, { kind: 'taken' }]))
  refused(inTurn(made, [unlike, { kind: 'existing' }]))
  accepted(inTurn(made, [alter(5), { kind: 'altered' }], [unlike, { kind: 'existing' }]))
  refused(inTurn(made, [alter(5), { kind: 'altered' }], [unlike, { kind: 'taken' }]))
})

test('topics of different names do not explain one another', () => {
  const create = inTurn([], [CREATE, { kind: 'created', topicId: 't' }])
  const other = create.map((one) => ({
    ...one,
    name: 'other',
    returnMs: undefined,
    outcome: { kind: 'unknown' } as const,
  }))
  accepted([...create, ...other])
  const absent = inTurn(create, [DESCRIBE, ABSENT])
  refused([...absent, ...other])
})

test('an attempt that was refused says nothing', () => {
  accepted(
    inTurn([], [DELETE, { kind: 'refused' }], [CREATE, { kind: 'refused' }], [DESCRIBE, ABSENT]),
  )
})

// Always the same twenty: about one history of a thousand, as tangled as these, takes more steps than are allowed.
test('ten processes and two hundred operations, some of them unanswered, are judged within the steps allowed', () => {
  const intents = fc.array(anyIntent(45, 15, distinctOperation), { minLength: 200, maxLength: 200 })
  for (const tangled of fc.sample(intents, { numRuns: 20, seed: 1 })) accepted(historyOf(tangled))
})

test('a search that takes too long says that it does not know, and that is no success', () => {
  const intents = fc.sample(anyIntent(45, 20), { numRuns: 200, seed: 1 })
  const verdict = checkLinearizable(historyOf(intents), 50)
  assert.ok(!verdict.ok && verdict.undecided)
  assert.match(
    verdict.explanation,
    /'orders': no order of its 200 operations was found or ruled out in 50 steps/,
  )
})

test('the model allows one answer to every operation', () => {
  fc.assert(
    fc.property(fc.array(anyIntent(0, 10), { maxLength: 20 }), (intents) => {
      const { state } = play(intents)
      for (const { operation } of intents) answerIn(state, operation, 'fresh')
    }),
  )
})

test('in an explanation, what is loose holds nothing up', () => {
  const at = { name: NAME, callMs: 5, returnMs: 5 }
  const explanation = refused([
    { ...at, process: 'q', operation: DESCRIBE, outcome: described('t') },
    { ...at, process: 'p', operation: DESCRIBE, outcome: ABSENT },
    { ...at, process: 'p', operation: CREATE, outcome: { kind: 'created' } },
    {
      name: NAME,
      callMs: 20,
      returnMs: 25,
      process: 'r',
      operation: DESCRIBE,
      outcome: described('u'),
    },
  ])
  assert.match(explanation, /5..5 ms {2}q .*\n.* r {2}describe -> described u .*\n.*the other 2 /)
})

test('the explanation shows only operations without which there would be an order', () => {
  const quick = { earlyMs: 0, lateMs: 0, fate: 'answered' } as const
  const noise = fc.sample(anyIntent(5, 0), { numRuns: 40, seed: 3 })
  const { history } = withTopic(play([...noise, { ...quick, operation: DELETE }]))
  const end = endMs(history)
  const stale = inTurn(
    history,
    [alter(7), { kind: 'altered' }],
    [alter(8), { kind: 'altered' }],
    [DESCRIBE, described('late', 7)],
    [DELETE, { kind: 'deleted' }],
  )
  const time = (from: number): string => `${end + from}..${end + from + 5} ms  late-${end + from}`
  assert.equal(
    refused(stale),
    [
      `'orders': these operations have no order that explains their answers`,
      `  ${time(20)}  alter {a: 8} -> altered`,
      `  ${time(30)}  describe -> described late {a: 7, b: 1, further: not compared}`,
      `  whether or not the other 44 took effect in their time`,
      `  the topic could be: late {a: (never answered), b: 1} before late-${end + 30} was answered at ${end + 35} ms`,
    ].join('\n'),
  )
})

// The rules of core/raft, each as a script: what it tells is compared with transcripts/<its name>.txt.

import { idOf, Script } from './script.ts'

/** A leads in term 1, and all know it. */
function led(machines: number, voters = machines, options = {}): Script {
  const script = new Script(machines, voters, options)
  script.quietly(() => script.passes(500))
  return script
}

export const DIALOGUES: Readonly<Record<string, () => Script>> = {
  election: () => {
    const script = new Script(3, 3)
    script.note(
      'Nobody hears of a leader. A asks first whether it would be voted for, and then for the votes.',
    )
    script.passes(300)
    return script
  },

  'pre-vote refused': () => {
    const script = led(3)
    script.note(
      'B lacks an entry that C has: it would not be voted for, and its term stays as it was.',
    )
    script.quietly(() => {
      script.isolate('B')
      script.propose('A', 'c1')
    })
    script.kill('A')
    script.heal()
    script.passes(500)
    return script
  },

  stickiness: () => {
    const script = led(3)
    script.note('C does not hear A, B does: B does not answer whoever asks to vote against it.')
    script.cut('A', 'C')
    script.passes(600)
    return script
  },

  'vote after a restart': () => {
    const script = led(3)
    script.note(
      'B may have told A that it hears it, and A count on that: B votes for nobody for an election time-out.',
    )
    script.cut('A', 'C')
    script.quietly(() => script.passes(300))
    script.isolate('A')
    script.kill('B')
    script.start('B')
    script.passes(600)
    return script
  },

  'no vote in the same term either': () => {
    const script = led(3)
    script.note(
      'B comes to hear of term 2, in which C has failed; it is still bound to A, which counts on it.',
    )
    script.isolate('A')
    const [from, to] = [idOf('C'), idOf('B')]
    script.comes({ kind: 'vote-answer', from, to, term: 2, pre: true, granted: false })
    const ask = { kind: 'vote', from, to, term: 2, pre: false, transfer: false } as const
    script.comes({ ...ask, lastIndex: 1, lastTerm: 1 })
    script.read('A', 'r1')
    return script
  },

  'log conflict and fast back-up': () => {
    const script = led(3)
    script.note('A has entries of term 1 that nobody else has; B and then C led since.')
    script.quietly(() => {
      script.isolate('A')
      for (let i = 1; i <= 5; i++) script.propose('A', `c${i}`)
      script.passes(700)
      for (let i = 6; i <= 8; i++) script.propose('B', `c${i}`)
      script.handOver('B', 'C')
    })
    script.note(
      'A hears C: its one refusal names its last index of a term that C may have too, and C goes back over its own of later terms.',
    )
    script.heal()
    script.passes(400)
    return script
  },

  'pipelining and flow control': () => {
    const script = led(2, 2, {
      appendBytesMax: 100,
      appendsInFlightMax: 2,
      uncommittedBytesMax: 300,
    })
    script.note(
      "Appends do not wait for one another's answers, but no more than two are on their way to B.",
    )
    script.slow('B')
    for (let i = 1; i <= 4; i++) script.propose('A', `c${i}`, 50)
    script.note('What is not committed is bounded.')
    script.propose('A', 'c5', 200)
    script.syncs('B')
    return script
  },

  'snapshot in parts': () => {
    const script = led(3, 3, { snapshotPartBytes: 100 })
    script.note('B was away while A compacted what it lacks.')
    script.quietly(() => {
      script.isolate('B')
      script.propose('A', 'c1')
      script.propose('A', 'c2')
    })
    script.compact('A', 3, 250)
    script.quietly(() => script.propose('A', 'c3'))
    script.heal()
    script.passes(300)
    return script
  },

  learner: () => {
    const script = led(4, 3)
    script.note('D receives the log and is counted in no quorum.')
    script.change('A', 'add-learner', 'D')
    script.isolate('B')
    script.isolate('C')
    script.propose('A', 'c1')
    script.note('It votes when it is asked: whoever asks may know that it is a voter.')
    const [from, to] = [idOf('B'), idOf('D')]
    script.quietly(() => script.passes(1000))
    const ask = { kind: 'vote', from, to, term: 2, pre: false, transfer: false } as const
    script.comes({ ...ask, lastIndex: 5, lastTerm: 1 })
    return script
  },

  promote: () => {
    const script = led(4, 3)
    script.quietly(() => script.change('A', 'add-learner', 'D'))
    script.note('D lags: as a voter it would only be counted, and be of no help.')
    script.isolate('D')
    script.quietly(() => script.propose('A', 'c1'))
    script.change('A', 'promote', 'D')
    script.heal()
    script.quietly(() => script.passes(400))
    script.change('A', 'promote', 'D')
    return script
  },

  'a lone voter grows': () => {
    const script = led(3, 1)
    script.quietly(() => script.change('A', 'add-learner', 'B'))
    script.quietly(() => script.passes(200))
    script.note(
      'Two voters are both needed. The first learner is promoted only when a second has caught up too.',
    )
    script.change('A', 'promote', 'B')
    script.quietly(() => script.change('A', 'add-learner', 'C'))
    script.quietly(() => script.passes(200))
    script.change('A', 'promote', 'B')
    script.change('A', 'promote', 'C')
    return script
  },

  'remove the leader itself': () => {
    const script = led(3)
    script.note('A leads until its removal has committed, by those who stay, and then no more.')
    script.change('A', 'remove', 'A')
    script.passes(700)
    return script
  },

  'no lease for who is leaving': () => {
    const script = led(2)
    script.note(
      'B is alone once it knows that A is removed, and a lone voter need not wait: A can count on nothing.',
    )
    script.deafen('A', 'B')
    script.change('A', 'remove', 'A')
    script.kill('B')
    script.start('B')
    script.passes(1)
    script.propose('B', 'c1')
    script.read('A', 'r1')
    return script
  },

  'what a removed member keeps': () => {
    const script = led(3)
    script.note(
      'C is removed and deletes its log. B does not know that yet, and counts on its vote: C has none for a log that lacks what its own had.',
    )
    script.quietly(() => {
      script.isolate('B')
      script.propose('A', 'c1')
      script.change('A', 'remove', 'C')
      script.forget('C')
      script.kill('A')
      script.heal()
      script.passes(250)
    })
    script.passes(500)
    return script
  },

  'a removed member comes back': () => {
    const script = led(3)
    script.quietly(() => {
      script.propose('A', 'c1')
      script.change('A', 'remove', 'C')
      script.forget('C')
      script.isolate('C')
      script.change('A', 'add-learner', 'C')
      script.heal()
    })
    script.note(
      'C said before its removal how much it had, and that comes late: it refuses, and gets all from the beginning.',
    )
    const [from, to] = [idOf('C'), idOf('A')]
    const late = { kind: 'append-answer', from, to, term: 1, round: 3 } as const
    script.comes({ ...late, result: { ok: true, match: 2 } })
    script.passes(400)
    return script
  },

  'no lone voter of long ago': () => {
    const script = new Script(3, 1)
    script.note(
      'A founded the group alone. It was removed, has deleted its log, and is sent it again from the beginning, where it is alone: it leads nobody before it has all that it had.',
    )
    script.quietly(() => {
      script.passes(100)
      for (const node of ['B', 'C']) script.change('A', 'add-learner', node)
      script.passes(200)
      for (const node of ['B', 'C']) script.change('A', 'promote', node)
      script.handOver('A', 'B')
      script.change('B', 'remove', 'A')
      script.forget('A')
      script.isolate('A')
    })
    const [from, to] = [idOf('B'), idOf('A')]
    const entries = script.raft('B').log.slice(1, 2, 1000)
    const prev = { prevIndex: 0, prevTerm: 0 }
    script.comes({ kind: 'append', from, to, term: 2, ...prev, entries, commit: 2, round: 9 })
    script.kill('A')
    script.start('A')
    script.passes(1)
    script.propose('A', 'c1')
    return script
  },

  'one change of members at a time': () => {
    const script = new Script(5, 4)
    script.note(
      'Not before an entry of its own term has committed, and not before the last change has.',
    )
    script.quietly(() => {
      script.isolate('C')
      script.slow('B')
      script.slow('D')
      script.passes(300)
      script.syncs('B')
      script.syncs('D')
      script.slow('B')
      script.slow('D')
      script.passes(1)
    })
    script.change('A', 'remove', 'C')
    script.syncs('B')
    script.syncs('D')
    script.slow('B')
    script.slow('D')
    script.change('A', 'remove', 'C')
    script.change('A', 'add-learner', 'E')
    script.syncs('B')
    script.syncs('D')
    return script
  },

  'hand over': () => {
    const script = led(3)
    script.note(
      'B lacks an entry: it gets that first, and nothing is proposed meanwhile. Then A steps down as it says so.',
    )
    script.slow('B')
    script.quietly(() => script.propose('A', 'c1'))
    script.handOver('A', 'B')
    script.propose('A', 'c2')
    script.syncs('B')
    script.read('A', 'r1')
    return script
  },

  'check-quorum': () => {
    const script = led(3)
    script.note(
      'A leader that no quorum answers steps down; what it was proposed and asked is not answered.',
    )
    script.isolate('A')
    script.propose('A', 'c1')
    script.quietly(() => script.passes(280))
    script.read('A', 'r1')
    script.passes(120)
    return script
  },

  'lease read': () => {
    const script = led(3)
    script.note(
      'A quorum has just heard A: until an election time-out later it elects nobody, and A answers by itself.',
    )
    script.propose('A', 'c1')
    script.read('A', 'r1')
    script.note('A follower knows of nothing.')
    script.read('B', 'r2')
    return script
  },

  'read by a round': () => {
    const script = led(3)
    script.note(
      'A was stopped so long that others may lead by now: it asks whether a quorum still follows.',
    )
    script.now += 270
    script.read('A', 'r1')
    return script
  },

  compaction: () => {
    const script = led(3, 3, { entriesKept: 2 })
    script.quietly(() => {
      for (let i = 1; i <= 4; i++) script.propose('A', `c${i}`)
    })
    script.note(
      'A keeps two entries before its snapshot: a follower that lacks no more than these needs no snapshot.',
    )
    script.isolate('B')
    script.quietly(() => script.propose('A', 'c5'))
    script.quietly(() => script.propose('A', 'c6'))
    script.compact('A', 7, 100)
    script.heal()
    script.passes(300)
    return script
  },
}

// The coordinator's rules for a range, each as a script: what it tells is compared with care-transcripts/<its name>.txt.

import { CareScript } from './care-script.ts'

export const CARE_DIALOGUES: Readonly<Record<string, () => CareScript>> = {
  'planned roll': () => {
    const script = new CareScript()
    script.note('A leader gives an end, stages, and leads on; the replicas stay.')
    script.passes(100)
    script.gives('A', { end: 7 })
    script.stored()
    script.outcome('applied')
    script.commits()
    script.passes(200)
    return script
  },

  'a follower fails': () => {
    const script = new CareScript()
    script.note('Only the empty seat is filled. The tail goes from the high watermark.')
    script.passes(100)
    script.gives('A', { end: 7, highWatermark: 4 }, 'B')
    script.stored()
    script.commits()
    script.passes(200)
    return script
  },

  'an idle follower is lost': () => {
    const script = new CareScript()
    script.note('Nothing is produced, so the leader notices nothing: it is asked for an end.')
    script.passes(100)
    script.dies('C')
    script.passes(150)
    script.gives('A', { end: 3, why: 'follower-failed' })
    script.stored()
    script.commits()
    return script
  },

  'a follower restarts': () => {
    const script = new CareScript()
    script.note('It has fenced the segment by that, and is as good as any for the next one.')
    script.passes(100)
    script.lives('B', true)
    script.unfit('B', 'restarted')
    script.gives('A', { end: 3, why: 'restarted' }, 'B')
    script.stored()
    script.commits()
    return script
  },

  'the leader fails': () => {
    const script = new CareScript()
    script.note(
      'Its lease is not asked for any more. The others are fenced, the longest leads the successor, which opens',
    )
    script.note('when that lease has run out.')
    script.passes(100)
    script.silent()
    script.passes(300)
    script.dies('A')
    script.passes(500)
    script.answers('B', 5, { highWatermark: 3 })
    script.answers('C', 6, { highWatermark: 4 })
    script.stored()
    script.passes(2000)
    script.commits()
    script.passes(200)
    return script
  },

  'the leader is fenced itself': () => {
    const script = new CareScript()
    script.note(
      'It is cut off from the coordinator for a while only. Once it has answered the fence, nothing has to be waited for.',
    )
    script.passes(100)
    script.silent()
    script.passes(2200)
    script.answers('B', 5, { highWatermark: 3 })
    script.answers('A', 6, { highWatermark: 4 })
    script.answers('C', 5, { highWatermark: 4 })
    script.stored()
    return script
  },

  'the leader gives an end while it is fenced': () => {
    const script = new CareScript()
    script.note('Its own end is all that it appended, and it is there to stage it.')
    script.passes(100)
    script.silent()
    script.passes(2200)
    script.answers('B', 5, { highWatermark: 3 })
    script.gives('A', { end: 7, highWatermark: 4 }, 'B')
    script.stored()
    return script
  },

  'answers are waited for': () => {
    const script = new CareScript()
    script.note(
      'One sure answer is enough, but who is alive has some time to say that it has more.',
    )
    script.passes(100)
    script.unfit('A', 'restarted')
    script.answers('A', 4)
    script.passes(300)
    script.answers('B', 6)
    script.passes(250)
    return script
  },

  'an unsure answer': () => {
    const script = new CareScript()
    script.note(
      'It sets no end and is no source, though it is the longest. What it saw readable counts.',
    )
    script.passes(100)
    script.unfit('A', 'restarted')
    script.answers('A', 9, { unsure: 'a damaged file', highWatermark: 4 })
    script.answers('B', 5)
    script.answers('C', 6)
    script.stored()
    return script
  },

  'no sure answer': () => {
    const script = new CareScript()
    script.note('Nobody guesses: the range waits, and says so.')
    script.passes(100)
    script.unfit('A', 'damaged')
    script.dies('B')
    script.dies('C')
    script.answers('A', 9, { unsure: 'a damaged file' })
    script.passes(1000)
    script.note('C returns, with all that it had.')
    script.lives('C', true)
    script.answers('C', 8)
    return script
  },

  'readable entries are missing': () => {
    const script = new CareScript()
    script.note(
      'A high watermark above every sure answer: something is damaged that nobody noticed. No seal.',
    )
    script.passes(100)
    script.unfit('A', 'restarted')
    script.answers('A', 9, { unsure: 'a damaged file', highWatermark: 8 })
    script.answers('B', 5)
    script.answers('C', 6)
    script.passes(2000)
    return script
  },

  'an answer of an earlier start': () => {
    const script = new CareScript()
    script.note(
      'B, the longest, restarts before the end commits: its answer and the token are dropped, the end is found anew.',
    )
    script.passes(100)
    script.unfit('A', 'restarted')
    script.answers('B', 8)
    script.answers('A', 5)
    script.answers('C', 6)
    script.lives('B', true)
    script.passes(50)
    script.note('What it said before does not count any more, however late it comes.')
    script.answers('B', 8, { boot: 1 })
    script.answers('B', 7)
    script.stored()
    return script
  },

  'the holder is lost': () => {
    const script = new CareScript()
    script.note('Then a lower end is as safe: no acknowledgement lies above any sure answer.')
    script.passes(100)
    script.unfit('A', 'restarted')
    script.answers('B', 8)
    script.answers('A', 5)
    script.answers('C', 6)
    script.dies('B')
    script.passes(50)
    script.stored()
    return script
  },

  'the whole cluster restarts': () => {
    const script = new CareScript({ brokers: 3 })
    script.note(
      'Every replica has fenced the segment by that. No lease can be held, so none is waited for.',
    )
    for (const name of ['A', 'B', 'C']) script.lives(name, true)
    script.another()
    script.unfit('A', 'restarted')
    script.unfit('B', 'restarted')
    script.answers('A', 4, { highWatermark: 2 })
    script.answers('B', 5, { highWatermark: 2 })
    script.answers('C', 4, { highWatermark: 1 })
    script.stored()
    return script
  },

  'too few brokers': () => {
    const script = new CareScript({ brokers: 3 })
    script.note('The leader is told, and stays frozen; as soon as there are enough, it goes on.')
    script.passes(100)
    script.dies('B')
    script.dies('C')
    script.passes(50)
    script.gives('A', { end: 7, highWatermark: 4 }, 'BC')
    script.passes(600)
    script.lives('C')
    script.gives('A', { end: 7, highWatermark: 4 }, 'BC')
    return script
  },

  'too few brokers for a planned roll': () => {
    const script = new CareScript({ brokers: 3, replicas: 'ABC', minInsync: 3 })
    script.note(
      'All replicas but one are drained and could go on: the end is cancelled, and the leader goes on.',
    )
    script.passes(100)
    script.drains('C')
    script.gives('A', { end: 7 })
    script.outcome('applied')
    script.commits()
    script.passes(500)
    return script
  },

  'the whole cluster is stopped': () => {
    const script = new CareScript({ brokers: 3 })
    script.note('In order, and at once: nobody can take over, and that is no failure.')
    script.passes(100)
    for (const name of ['A', 'B', 'C']) script.stops(name)
    script.passes(50)
    script.gives('A', { end: 7, why: 'drained' })
    script.outcome('applied')
    script.commits()
    script.passes(100)
    return script
  },

  'more brokers come': () => {
    const script = new CareScript({ brokers: 2, replicas: 'AB' })
    script.note(
      'The segment opened on two. A third must have been there for a moment before it rolls for that.',
    )
    script.passes(500)
    script.joins('C')
    script.passes(2100)
    script.gives('A', { end: 7, why: 'under-replicated' })
    script.stored()
    script.commits()
    script.passes(100)
    return script
  },

  'a replica is drained': () => {
    const script = new CareScript()
    script.note('The leader itself: it gives the end, and another one leads.')
    script.passes(100)
    script.drains('A')
    script.passes(50)
    script.gives('A', { end: 7, why: 'drained' })
    script.stored()
    script.commits()
    return script
  },

  'a staging fails': () => {
    const script = new CareScript()
    script.note('Before the commit that costs nothing: other brokers, another token.')
    script.passes(100)
    script.gives('A', { end: 7 })
    script.notStored('C')
    script.stored()
    return script
  },

  'the holder is silent': () => {
    const script = new CareScript()
    script.note(
      'Twice: then the leader that gave the end is fenced, and another replica, which has a sure answer, is the holder.',
    )
    script.passes(100)
    script.gives('A', { end: 7, highWatermark: 4 })
    for (let i = 0; i < 12; i++) {
      script.passes(900)
      script.gives('A', { end: 7, highWatermark: 4 })
    }
    script.answers('A', 7)
    script.answers('B', 6)
    script.answers('C', 5)
    return script
  },

  'the leader is what fails': () => {
    const script = new CareScript({ brokers: 6 })
    script.note('Two successors in a row fail under A: another replica leads the next.')
    script.passes(100)
    for (const failed of ['B', 'C', 'D']) {
      script.gives('A', { end: 7 }, failed)
      script.stored()
      script.commits()
      script.passes(1500)
    }
    return script
  },

  'the leader names half of the set': () => {
    const script = new CareScript()
    script.note('And they are alive: it is the leader that is cut off.')
    script.passes(100)
    script.gives('A', { end: 7 }, 'BC')
    return script
  },

  'a roll of unknown outcome': () => {
    const script = new CareScript()
    script.note(
      'It may yet commit. The same may be proposed again; another end only when this one cannot commit any more.',
    )
    script.passes(100)
    script.gives('A', { end: 7 })
    script.stored()
    script.outcome('unknown')
    script.passes(300)
    script.dies('B')
    script.outcome('unknown')
    script.passes(500)
    script.commits()
    script.gives('A', { end: 9 }, 'B')
    return script
  },

  'an end that is cancelled': () => {
    const script = new CareScript()
    script.note(
      'The leader asked for that. Its end counts for the attempt under which it was given, and for no other.',
    )
    script.passes(100)
    script.gives('A', { end: 7 })
    script.apply({ ...script.view.segment, attempt: 1 })
    script.gives('A', { end: 7, attempt: 0 })
    script.passes(100)
    script.gives('A', { end: 9 })
    script.stored()
    return script
  },

  'another coordinator': () => {
    const script = new CareScript()
    script.note(
      'What was staged by the one before is not known to it. It waits for a lease that may have been confirmed.',
    )
    script.passes(100)
    script.silent()
    script.dies('A')
    script.passes(800)
    script.answers('B', 5)
    script.answers('C', 6)
    script.another()
    script.passes(800)
    script.answers('B', 5)
    script.answers('C', 6)
    script.stored()
    script.passes(1500)
    return script
  },

  'a leader that gives no end': () => {
    const script = new CareScript()
    script.note(
      'Though it asks for its lease. A follower cannot go on, so it is fenced in the end.',
    )
    script.passes(100)
    script.unfit('B', 'damaged')
    script.passes(5000)
    return script
  },
}

// The rules of a segment's leader and followers, each as a script: what it tells is compared with
// transcripts/replicas/<its name>.txt.

import { Script } from './script.ts'

/** With a few entries that are committed. */
function written(letters = 'ABC', entries = 2): Script {
  const script = new Script(letters)
  script.appends(entries)
  script.lines.length = 0
  return script
}

export const DIALOGUES: Readonly<Record<string, () => Script>> = {
  append: () => {
    const script = new Script()
    script.note('Entries go to all followers at once, and do not wait for one another.')
    script.appends()
    script.note('C syncs two at a time: it acknowledges them together.')
    script.slow('C')
    script.appends(2)
    script.syncs('C')
    return script
  },

  'high watermark': () => {
    const script = new Script()
    script.note("Not what is durable with most: with all. The leader's own disk is one of them.")
    script.slow('A')
    script.appends()
    script.shows('A')
    script.syncs('A')
    script.note('A follower serves what it has been told of, never more than it has.')
    script.shows('B')
    return script
  },

  'a segment alone': () => {
    const script = new Script('A')
    script.note('Without followers what is durable is committed.')
    script.appends()
    script.asked('full')
    script.commits({ state: 'sealed', endEntry: 1 })
    return script
  },

  'planned roll': () => {
    const script = written()
    script.note('What is in flight commits first; nothing more is appended.')
    script.slow('C')
    script.appends()
    script.asked('full')
    script.appends()
    script.syncs('C')
    script.commits({ state: 'sealed', endEntry: 3 })
    script.shows('A')
    script.shows('B')
    return script
  },

  'a follower fails': () => {
    const script = written()
    script.note("C's disk is stuck. The end is everything: nothing is cut, nothing appended again.")
    script.slow('C')
    script.appends(2)
    script.passes(800)
    script.appends()
    script.note('C comes to its senses: too late, the end is given, and may commit at any time.')
    script.syncs('C')
    script.shows('A')
    script.commits({ state: 'sealed', endEntry: 4 })
    script.shows('A')
    return script
  },

  'a follower fails while another is slow': () => {
    const script = written()
    script.note('The end waits for B, which has not failed.')
    script.slow('C')
    script.appends()
    script.passes(600)
    script.slow('B')
    script.appends()
    script.passes(200)
    script.syncs('B')
    return script
  },

  'two followers fail': () => {
    const script = written()
    script.note('B has had less to do, and as long for it.')
    script.slow('C')
    script.appends()
    script.passes(300)
    script.slow('B')
    script.appends()
    script.passes(800)
    script.note('It is for the coordinator to say who leads on.')
    return script
  },

  'a follower fails during a planned roll': () => {
    const script = written()
    script.slow('B')
    script.appends()
    script.asked('old')
    script.passes(800)
    return script
  },

  'a follower refuses': () => {
    const script = written()
    script.note('Exactly the next one, and from the leader: nothing is numbered anew.')
    script.comes('A', 'B', 3)
    script.comes('A', 'B', 1)
    script.comes('C', 'B', 2)
    script.note('What a follower refuses it cannot get later: it has failed.')
    script.refuses('B', 'its disk is full')
    return script
  },

  'a fence while entries are in flight': () => {
    const script = written()
    script.note(
      'The fence is behind entry 2 in the log of B: its answer waits until both are synced.',
    )
    script.slow('B')
    script.appends()
    script.fences('B')
    script.note(
      'A, fenced too, appends nothing more, and gives no end. What it had may still commit.',
    )
    script.fences('A')
    script.appends()
    script.syncs('B')
    script.shows('A')
    return script
  },

  'entries behind a fence': () => {
    const script = written()
    script.note(
      'They are refused. What was answered holds for ever: the leader is never told of more.',
    )
    script.fences('B')
    script.appends()
    script.shows('B')
    return script
  },

  'an end that is fenced': () => {
    const script = written()
    script.note(
      'The end that A gave may still commit: its high watermark stands still all the same.',
    )
    script.slow('C')
    script.appends()
    script.refuses('B', 'its disk is full')
    script.syncs('C')
    script.fences('A')
    script.commits({ state: 'open', attempt: 1 })
    script.shows('A')
    return script
  },

  'a fence that comes twice': () => {
    const script = written()
    script.note('Who asks again is told again.')
    script.fences('B')
    script.fences('B')
    return script
  },

  'cancel and go on': () => {
    const script = written()
    script.asked('policy')
    script.note('Nothing comes of it. Time does not end that, only the log does.')
    script.passes(5200)
    script.appends()
    script.note('An attempt that is not above the one that was given says nothing.')
    script.commits({ state: 'open', attempt: 0 })
    script.appends()
    script.commits({ state: 'open', attempt: 1 })
    script.appends()
    return script
  },

  'cancel without a follower': () => {
    const script = written()
    script.note(
      'Who failed stays failed: the segment can only be ended, and the end is given again.',
    )
    script.refuses('C', 'its disk is full')
    script.commits({ state: 'open', attempt: 1 })
    script.appends()
    return script
  },

  'a late acknowledgement': () => {
    const script = written()
    script.slow('B')
    script.slow('C')
    script.appends()
    script.refuses('B', 'its link broke and its broker has restarted')
    script.note('B had it all the same. It counts for nothing any more.')
    script.late('B', 3)
    script.shows('A')
    script.syncs('C')
    script.note('The seal commits what B lacked for.')
    script.commits({ state: 'sealed', endEntry: 3 })
    return script
  },

  'an acknowledgement of what was never sent': () => {
    const script = written()
    script.late('B', 7)
    return script
  },

  'a follower restarts': () => {
    const script = written()
    script.note('C loses what it had not synced, and takes nothing more for this segment.')
    script.slow('C')
    script.appends()
    script.restarts('C')
    script.comes('A', 'C', 2)
    script.shows('C')
    return script
  },

  'the leader restarts': () => {
    const script = written()
    script.note(
      'It has what it had synced, fenced: nobody continues a segment from before his start.',
    )
    script.slow('A')
    script.appends()
    script.restarts('A')
    script.fences('A')
    script.fences('B')
    script.fences('C')
    script.note(
      'A is shorter than the others: the end is theirs, and A lacks an entry until repair.',
    )
    script.commits({ state: 'sealed', endEntry: 3 })
    script.shows('A')
    script.shows('B')
    return script
  },

  'sealed below': () => {
    const script = written()
    script.note('C was not asked, and has more than the end: nobody was ever told of it.')
    script.slow('A')
    script.slow('B')
    script.appends()
    script.restarts('A')
    script.restarts('B')
    script.fences('AB')
    script.commits({ state: 'sealed', endEntry: 2 })
    script.shows('C')
    script.comes('A', 'C', 2)
    return script
  },
}

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

  'the leader fails': () => {
    const script = new CareScript()
    script.note(
      'Its lease runs out, the others are fenced, the longest leads. The dead one is not waited for.',
    )
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
}

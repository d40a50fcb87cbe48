// The main rules, each as a short play. transcripts/ has what is said in them.

import { clusterId } from '../../../src/model/ids.ts'
import { Dialogue } from './dialogue.ts'

const KNOWN = { id: clusterId('c'.repeat(32)), foundedMs: 5000, shards: 64 }

export const SCRIPTS: Readonly<Record<string, () => Dialogue>> = {
  join: () => {
    const d = new Dialogue(
      'A founds a cluster; B joins it through a list that has B in it, C through B',
    )
    d.start('A')
    d.quietly(500)
    d.note('b is another name of B')
    d.start('B', { seeds: ['B', 'b', 'A'] })
    d.run(300)
    d.note('C asks B, and A hears of it')
    d.start('C', { seeds: ['B'] })
    d.run(1000)
    d.view('A')
    d.view('C')
    return d
  },

  'indirect-probe': () => {
    const d = new Dialogue('A does not reach B, but C and D do: nobody is suspected')
    d.settled('A', 'B', 'C', 'D')
    d.cut('A', 'B')
    d.run(3000)
    d.health('A')
    return d
  },

  death: () => {
    const d = new Dialogue(
      'B dies: A and C find out, each confirms the other, and the wait is short',
    )
    d.settled('A', 'B', 'C')
    d.kill('B')
    d.run(4600)
    d.view('A')
    return d
  },

  'one-suspects': () => {
    const d = new Dialogue(
      'Nobody reaches B any more but C does: whoever is alone with a suspicion waits long, and B contradicts',
      {
        helpers: 0,
      },
    )
    d.settled('A', 'B', 'C')
    d.cut('A', 'B')
    d.run(3500)
    d.health('A')
    return d
  },

  restart: () => {
    const d = new Dialogue(
      'B is killed and starts again before anybody has noticed: its new life replaces the old one at once',
    )
    d.settled('A', 'B')
    d.kill('B')
    d.start('B', { seeds: ['A'], boot: 2, cluster: KNOWN })
    d.run(1500)
    d.view('A')
    return d
  },

  'old-boot': () => {
    const d = new Dialogue(
      'B starts from a disk that was put back: its boot count is remembered, and it is told so',
    )
    d.settled('A', 'B', 'C')
    d.kill('B')
    d.note('through a seed')
    d.start('B', { seeds: ['A'], boot: 1, cluster: KNOWN })
    d.run(100)
    d.note('without one: somebody that it pings, or that pings it, refuses it')
    d.start('B', { boot: 1, cluster: KNOWN })
    d.run(300)
    return d
  },

  'lost-disk': () => {
    const d = new Dialogue(
      'The machine of B comes back with an empty disk: X lives at the address of B, and does not answer for it',
    )
    d.settled('A', 'B')
    d.kill('B')
    d.start('X', { at: 'B', seeds: ['A'] })
    d.run(5200)
    d.view('A')
    return d
  },

  partition: () => {
    const d = new Dialogue(
      'A and B are parted from C, longer than anybody talks of it; then the parts find each other',
      {
        deadProbeMaxMs: 8000,
      },
    )
    d.settled('A', 'B', 'C')
    d.cut('A', 'C')
    d.cut('B', 'C')
    d.quietly(60_000)
    d.view('A')
    d.note('the network is whole again')
    d.mend()
    d.run(1200)
    d.view('A')
    d.view('C')
    return d
  },

  leave: () => {
    const d = new Dialogue('B leaves: all are told, nobody thinks it dead, and nobody probes it')
    d.settled('A', 'B', 'C')
    d.leave('B')
    d.run(2500)
    d.view('A')
    return d
  },

  sleep: () => {
    const d = new Dialogue('A is stopped for five seconds: it blames nobody else for it')
    d.settled('A', 'B', 'C')
    d.sleep('A')
    d.quietly(5000)
    d.note('A goes on')
    d.awake('A')
    d.run(1500)
    d.health('A')
    d.view('A')
    return d
  },

  flapping: () => {
    const d = new Dialogue(
      'B starts over and over: it is held back, longer each time, and not counted on',
    )
    d.settled('A', 'B', 'C')
    for (let boot = 2; boot <= 4; boot++) {
      d.note(`boot ${boot}`)
      d.kill('B')
      d.start('B', { seeds: ['A'], boot, cluster: KNOWN })
      d.run(150)
      d.view('A')
      d.quietly(3000)
    }
    d.note('and then stays')
    d.quietly(60_000)
    d.view('A')
    return d
  },

  hints: () => {
    const d = new Dialogue(
      'Who leads a shard is told along, and the newest term wins, whoever is heard last',
    )
    d.settled('A', 'B', 'C')
    d.cut('A', 'C')
    d.lead('A', 7, 4)
    d.lead('C', 7, 5)
    d.run(900)
    return d
  },

  foreign: () => {
    const d = new Dialogue(
      'B has founded a cluster of its own by mistake, and lives where the older one knows a member',
    )
    d.settled('A', 'B')
    d.kill('B')
    d.start('B', { cluster: { id: clusterId('d'.repeat(32)), foundedMs: 9000, shards: 64 } })
    d.run(2500)
    return d
  },

  'only-itself': () => {
    const d = new Dialogue(
      'All seeds of A are A itself, under one name or another: it founds a cluster',
    )
    d.start('A', { seeds: ['A', 'a'] })
    d.run(10)
    d.found('A')
    return d
  },
}

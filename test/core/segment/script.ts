// A segment's leader A and its followers, which do what a script says, and tell it as a dialogue. Links deliver at once and in
// order, disks sync at once unless one is slow; the coordinator is the script itself.
//
//   at 0 ms
//     A appends entry 0
//     A -> B  entry 0, high watermark 0
//     B -> A  durable up to 1
//
// A line that begins with # says what the script does.

import { SegmentFollower } from '../../../src/core/segment/follower.ts'
import { SegmentLeader, type SegmentNews } from '../../../src/core/segment/leader.ts'
import { type EndReason, type LeadersEnd, SEGMENT_TIMING } from '../../../src/core/segment/types.ts'
import type { NodeId } from '../../../src/model/ids.ts'

const TICK_MS = 50

interface Player {
  readonly letter: string
  readonly id: NodeId
  leader: SegmentLeader | undefined
  follower: SegmentFollower | undefined
  /** Its disk does not sync until it is told to. */
  slow: boolean
  /** Of entries and fences that wait for the sync, in order. */
  unsynced: { entries: number; fence: boolean }
}

export function idOf(letter: string): NodeId {
  return (letter.charCodeAt(0) - 65).toString(16).padStart(32, '0') as NodeId
}

export class Script {
  readonly lines: string[] = []
  private now = 0
  private told = -1
  private readonly players: readonly Player[]
  private givenTold: LeadersEnd | undefined
  private modeTold = 'open'
  private hwTold = 0
  private cancelTold = false

  constructor(letters = 'ABC') {
    const names = letters.split('')
    const ids = names.map(idOf)
    this.players = names.map((letter, i) => {
      const options = { attempt: 0, timing: SEGMENT_TIMING }
      const follows = { leader: ids[0] as NodeId, next: 0, fencedByRestart: false }
      return {
        letter,
        id: idOf(letter),
        leader: i === 0 ? new SegmentLeader({ followers: ids.slice(1), ...options }) : undefined,
        follower: i === 0 ? undefined : new SegmentFollower(follows),
        slow: false,
        unsynced: { entries: 0, fence: false },
      }
    })
  }

  // What a script says.

  note(text: string): void {
    this.lines.push(`# ${text}`)
  }

  appends(count = 1): void {
    for (let i = 0; i < count; i++) {
      const { leader, player } = this.leading()
      if (!leader.mayAppend) {
        this.say(`${player.letter} appends nothing: it is ${leader.mode}`)
        continue
      }
      const entry = leader.end
      leader.appended(this.now)
      this.say(`${player.letter} appends entry ${entry}`)
      this.queued(player, () => player.unsynced.entries++)
      for (const to of this.players) if (to.follower !== undefined) this.sends(to, entry)
      this.settle()
    }
  }

  passes(ms: number): void {
    const end = this.now + ms
    while (this.now + TICK_MS <= end) {
      this.now += TICK_MS
      this.players[0]?.leader?.tick(this.now)
      this.settle()
    }
    this.now = end
  }

  slow(letter: string): void {
    this.player(letter).slow = true
  }

  syncs(letter: string): void {
    const player = this.player(letter)
    player.slow = false
    this.say(`${letter} has synced`)
    this.sync(player)
    this.settle()
  }

  asked(why: EndReason): void {
    this.say(`coordinator -> A  give an end: ${why}`)
    this.leading().leader.roll(why)
    this.settle()
  }

  fences(letters: string): void {
    for (const letter of letters) {
      const player = this.player(letter)
      this.say(`coordinator -> ${letter}  fence`)
      player.leader?.fence()
      player.follower?.fence()
      this.queued(player, () => {
        player.unsynced.fence = true
      })
      this.settle()
    }
  }

  /** What the shard's log says, as all come to know it. */
  commits(news: SegmentNews): void {
    const what =
      news.state === 'sealed'
        ? `the segment is sealed at ${news.endEntry}`
        : `the attempt is now ${news.attempt}`
    this.say(`committed: ${what}`)
    for (const { leader, follower } of this.players) {
      leader?.learned(news)
      if (news.state === 'sealed') follower?.seal(news.endEntry)
    }
    this.settle()
  }

  restarts(letter: string): void {
    const player = this.player(letter)
    const was = player.leader ?? player.follower
    const leader = this.players[0] as Player
    const options = { leader: leader.id, next: was?.durableEnd ?? 0, fencedByRestart: true }
    player.follower = new SegmentFollower(options)
    player.unsynced = { entries: 0, fence: false }
    player.slow = false
    this.say(`${letter} starts again with ${player.follower.next} entries, fenced`)
    if (player.leader === undefined) leader.leader?.failed(player.id, 'its broker has restarted')
    player.leader = undefined
    this.settle()
  }

  /** An entry comes that the leader did not just send, or not the leader. */
  comes(from: string, to: string, entry: number): void {
    this.say(`${from} -> ${to}  entry ${entry}   (out of turn)`)
    const check = this.player(to).follower?.check(idOf(from), entry)
    if (check !== undefined && check !== 'take') this.say(`${to} -> ${from}  no: ${check.refuse}`)
  }

  refuses(letter: string, why: string): void {
    this.say(`${letter} -> A  no: ${why}`)
    this.leading().leader.failed(idOf(letter), why)
    this.settle()
  }

  /** An acknowledgement that was long on its way. */
  late(letter: string, end: number): void {
    this.say(`${letter} -> A  durable up to ${end}   (late)`)
    this.leading().leader.acked(idOf(letter), end, this.now)
    this.settle()
  }

  shows(letter: string): void {
    const { leader, follower } = this.player(letter)
    if (leader !== undefined) {
      const { mode, end, highWatermark } = leader
      this.say(`${letter} is ${mode}: ${end} entries, high watermark ${highWatermark}`)
    } else if (follower !== undefined) {
      const { next, durableEnd, ackable, highWatermark } = follower
      const has = `${next} entries, ${durableEnd} durable, acknowledges ${ackable}`
      this.say(`${letter} has ${has}, high watermark ${highWatermark}`)
    }
  }

  // What comes of it.

  private leading(): { player: Player; leader: SegmentLeader } {
    const [player] = this.players
    if (player?.leader === undefined) throw new Error('nobody leads any more')
    return { player, leader: player.leader }
  }

  private player(letter: string): Player {
    const player = this.players.find((one) => one.letter === letter)
    if (player === undefined) throw new Error(`there is no ${letter}`)
    return player
  }

  private sends(to: Player, entry: number): void {
    const { leader, player } = this.leading()
    this.say(`A -> ${to.letter}  entry ${entry}, high watermark ${leader.highWatermark}`)
    const check = to.follower?.check(player.id, entry)
    if (check !== 'take') {
      const why = check?.refuse ?? 'not here'
      this.say(`${to.letter} -> A  no: ${why}`)
      return leader.failed(to.id, why)
    }
    to.follower?.took()
    to.follower?.heard(leader.highWatermark)
    this.queued(to, () => to.unsynced.entries++)
  }

  private queued(player: Player, put: () => void): void {
    put()
    if (!player.slow) this.sync(player)
  }

  private sync(player: Player): void {
    const { leader, follower, unsynced } = player
    const before = leader?.durableEnd ?? follower?.ackable ?? 0
    leader?.durable(leader.durableEnd + unsynced.entries)
    follower?.durable(follower.durableEnd + unsynced.entries)
    if (unsynced.fence) follower?.fenceDurable()
    if (unsynced.fence) {
      const end = leader?.durableEnd ?? follower?.answer?.end
      const highWatermark = leader?.highWatermark ?? follower?.answer?.highWatermark
      const said = `fenced at ${end}, high watermark ${highWatermark}`
      this.say(`${player.letter} -> coordinator  ${said}`)
    }
    player.unsynced = { entries: 0, fence: false }
    const [head] = this.players
    if (follower !== undefined && follower.ackable > before && head?.leader !== undefined) {
      this.say(`${player.letter} -> A  durable up to ${follower.ackable}`)
      head.leader.acked(player.id, follower.ackable, this.now)
    }
  }

  /** What has changed with the leader is told, and what its followers hear of it. */
  private settle(): void {
    const [head] = this.players
    const leader = head?.leader
    if (leader === undefined) return
    const { mode, given, highWatermark, failedReplicas, wantsCancel } = leader
    if (highWatermark > this.hwTold) this.say(`A: everything below ${highWatermark} is committed`)
    this.hwTold = Math.max(this.hwTold, highWatermark)
    for (const { follower } of this.players) follower?.heard(highWatermark)
    if (mode !== this.modeTold) {
      const failed = failedReplicas.map(({ node, why }) => `, ${node} failed: ${why}`)
      this.say(`A is ${mode}${mode === 'holding' ? failed.join('') : ''}`)
    }
    this.modeTold = mode
    if (given !== undefined && given !== this.givenTold) {
      const { attempt, end, failed, why } = given
      const words = `end ${end} under attempt ${attempt}, high watermark ${given.highWatermark}`
      const without = failed.map((one) => `; without ${one.node}: ${one.why}`)
      this.say(`A -> coordinator  ${words}, ${why}${without.join('')}`)
    }
    this.givenTold = given
    if (wantsCancel && !this.cancelTold) this.say('A -> coordinator  please cancel the end')
    this.cancelTold = wantsCancel
  }

  private say(line: string): void {
    if (this.told !== this.now) this.lines.push(`at ${this.now} ms`)
    this.told = this.now
    this.lines.push(`  ${line.replaceAll(/0{31}./g, (id) => letterOf(id))}`)
  }
}

function letterOf(node: string): string {
  return String.fromCharCode(65 + Number.parseInt(node, 16))
}

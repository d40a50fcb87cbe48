// The course of one seed: who there is, what befalls them, and what must be true in the end.

import { nodeId } from '../../../src/model/ids.ts'
import { Cluster } from './cluster.ts'
import { type Machine, SETTINGS } from './machine.ts'

const JOINING_MS = 10_000
const TROUBLE_MS = 40_000
/** After the trouble, until everybody knows who is there. */
const CONVERGE_MS = 45_000
/** What was found so shortly before the end of the trouble is news, and spreads. */
const FRESH_MS = 5000
/** At the end of that, nothing is new, unless loads change. */
const QUIET_MS = 10_000
/** Then a member pings, answers, and now and then tries one of the dead. */
const QUIET_PACKETS_PER_SECOND = 4
/** From a death in good health until everybody knows. */
const DETECT_MS = 15_000
/** From a farewell until everybody knows. */
const FAREWELL_MS = 5000
/** Packets that one member sends per second of its life, on the average of the run. */
const PACKETS_PER_SECOND = 20

/** In the busiest second: gossip and the own probe, and what each other member may ask for. */
const PACKETS_IN_A_SECOND = 30
const PACKETS_IN_A_SECOND_EACH = 6

export interface SwimRun {
  readonly violations: readonly string[]
  readonly story: readonly string[]
  readonly members: number
  readonly suspicions: number
  readonly deaths: number
  /** From the last death until all knew; undefined when nobody was left to know. */
  readonly detectedMs: number | undefined
  readonly packetsPerSecond: number
  readonly packetsInOneSecond: number
}

/** What befalls the cluster. */
type Course = 'everything' | 'split' | 'restart' | 'loss' | 'deaf' | 'one-link' | 'sleep'
const COURSES: readonly Course[] = [
  'everything',
  'everything',
  'split',
  'restart',
  'loss',
  'deaf',
  'one-link',
  'sleep',
]

const SIZES: readonly number[] = [1, 3, 5, 2, 20, 3, 8]
/** Of whom some can vouch for others. */
const LEAST: Readonly<Record<Course, number>> = {
  everything: 1,
  split: 2,
  restart: 2,
  loss: 5,
  deaf: 5,
  'one-link': 5,
  sleep: 5,
}

export function runSwim(seed: number): SwimRun {
  return new Run(seed).whole()
}

class Run {
  private readonly cluster: Cluster
  private readonly course: Course
  private readonly size: number
  private detectedMs: number | undefined

  constructor(seed: number) {
    this.course = COURSES[seed % COURSES.length] ?? 'everything'
    // Small ones are the most common, and the most delicate.
    const most = SIZES[Math.floor(seed / COURSES.length) % SIZES.length] ?? 3
    const least = LEAST[this.course]
    this.size = Math.max(least, most)
    // Nothing but the probes of the dead is to bring the sides of a partition together.
    const seedRetryMs = this.course === 'split' ? 3_600_000 : SETTINGS.seedRetryMs
    this.cluster = new Cluster(seed, this.size, { ...SETTINGS, seedRetryMs })
  }

  whole(): SwimRun {
    const { cluster } = this
    this.joinAll()
    cluster.run(JOINING_MS)
    this.beginTrouble()
    cluster.run(TROUBLE_MS)
    this.endTrouble()
    const fresh = cluster.lastDeathAt > cluster.now - FRESH_MS
    const { deaths } = cluster
    cluster.run(CONVERGE_MS - QUIET_MS)
    if (this.course === 'split' && !fresh && cluster.deaths > deaths) {
      cluster.truth.violation('somebody is thought dead because two parts have met')
    }
    this.checkQuiet()
    this.checkAll('after the trouble')
    this.lastDeath()
    this.farewell()
    return this.result()
  }

  private result(): SwimRun {
    const { cluster } = this
    const seconds = cluster.now / 1000
    const most = Math.max(...cluster.machines.map(({ packetsSent }) => packetsSent / seconds))
    const peak = Math.max(...cluster.machines.map(({ mostInSecond }) => mostInSecond))
    if (peak > PACKETS_IN_A_SECOND + PACKETS_IN_A_SECOND_EACH * this.size) {
      cluster.truth.violation(`a member sends ${peak} packets in one second`)
    }
    if (most > PACKETS_PER_SECOND) {
      cluster.truth.violation(`a member sends ${most.toFixed(1)} packets per second`)
    }
    return {
      violations: cluster.truth.violations,
      story: cluster.story,
      members: this.size,
      suspicions: cluster.suspicions,
      deaths: cluster.deaths,
      detectedMs: this.detectedMs,
      packetsPerSecond: most,
      packetsInOneSecond: peak,
    }
  }

  // The beginning.

  private joinAll(): void {
    const { cluster } = this
    const [first, ...others] = cluster.machines
    if (first !== undefined) cluster.start(first)
    for (const machine of others) {
      cluster.after(cluster.chance.float() * 4000, () => cluster.start(machine))
    }
    cluster.after(200, () => this.leadShards())
    // Changed loads raise incarnations, and would help whoever has to contradict something.
    if (this.course !== 'split') cluster.after(300, () => this.changeLoads())
  }

  /** Some shard has a new leader, and one of the members knows. */
  private leadShards(): void {
    const { cluster } = this
    if (cluster.now > JOINING_MS + TROUBLE_MS) return
    cluster.after(200 + cluster.chance.float() * 4000, () => this.leadShards())
    const machine = this.any()
    if (machine.swim?.joined !== true || machine.stopped) return
    const shard = cluster.chance.below(8)
    const term = (cluster.leaders.get(shard)?.term ?? 0) + 1
    const { node } = machine.disk
    machine.swim.lead({ shard, term, leader: nodeId(node) }, machine.clock(cluster.now))
    // What only a member knew that is gone now is lost, as it may be.
    cluster.leaders.set(shard, { term, leader: node })
    cluster.drive(machine)
  }

  private changeLoads(): void {
    const { cluster } = this
    cluster.after(cluster.chance.float() * 3000, () => this.changeLoads())
    const machine = this.any()
    if (machine.swim === undefined || machine.stopped) return
    const profile = machine.profile(cluster.chance.below(1e9))
    machine.swim.setProfile(profile, machine.clock(cluster.now))
    cluster.drive(machine)
  }

  // The trouble.

  private beginTrouble(): void {
    const { cluster } = this
    const { chance, network } = cluster
    cluster.suspicions = 0
    switch (this.course) {
      case 'everything':
        network.lossShare = chance.below(2) === 0 ? 0 : chance.float() * 0.25
        network.slowShare = chance.float() * 0.1
        this.everything()
        return
      case 'split': {
        cluster.say('the network is split')
        const side = cluster.machines.map(() => chance.below(2))
        this.cutBetween((a, b) => side[a] !== side[b])
        return
      }
      case 'loss':
        network.lossShare = 0.1
        return
      case 'deaf':
        cluster.say('m1 hears little')
        network.deaf = { machine: 1, lossShare: 0.7 }
        return
      case 'one-link': {
        const [a, b] = [this.any().index, this.any().index]
        cluster.say(`m${a} and m${b} do not reach each other`)
        if (a !== b) network.cutBoth(a, b)
        return
      }
      case 'restart':
        return this.restartAll()
      case 'sleep':
        return this.sleep()
    }
  }

  /** All at once, and again, as somebody does who changes the configuration. */
  private restartAll(): void {
    const { cluster } = this
    cluster.say('all are restarted')
    for (const machine of cluster.machines) {
      cluster.after(cluster.chance.float() * 500, () => {
        cluster.kill(machine)
        this.startLater(machine, 2000, false)
      })
    }
    if (cluster.now < JOINING_MS + TROUBLE_MS / 2) cluster.after(15_000, () => this.restartAll())
  }

  private sleep(): void {
    const { cluster } = this
    cluster.onlySleep = true
    if (cluster.now > JOINING_MS + TROUBLE_MS - 16_000) return
    const machine = this.any()
    const ms = 600 + cluster.chance.float() * 9000
    if (cluster.chance.below(2) === 0) machine.stopAtPingMs = ms
    else cluster.stop(machine, ms)
    cluster.after(1000 + ms + cluster.chance.float() * 6000, () => this.sleep())
  }

  private everything(): void {
    const { cluster } = this
    const { chance } = cluster
    if (cluster.now > JOINING_MS + TROUBLE_MS - 100) return
    cluster.after(chance.float() * 4000, () => this.everything())
    this.befall(this.any(), this.any())
  }

  private befall(machine: Machine, other: Machine): void {
    const { cluster } = this
    const { chance, network } = cluster
    switch (chance.below(11)) {
      case 0:
      case 1:
        cluster.kill(machine)
        return this.startLater(machine, 6000, false)
      case 2:
        cluster.kill(machine)
        return this.startLater(machine, 20_000, false)
      case 3:
        // One that knows the cluster must be left.
        if (machine.index === 0) return
        cluster.kill(machine)
        cluster.say(`${machine.name} loses its disk`)
        machine.wipe()
        return this.startLater(machine, 3000, false)
      case 4:
        cluster.kill(machine)
        return this.startLater(machine, 3000, true)
      case 5:
        return cluster.stop(machine, 500 + chance.float() * 12_000)
      case 6:
        network.cut(machine.index, other.index)
        if (chance.below(2) === 0) network.cut(other.index, machine.index)
        return
      case 7: {
        cluster.say(`${machine.name} is cut off`)
        const way = chance.below(3)
        for (const { index } of cluster.machines) {
          if (way !== 1) network.cut(machine.index, index)
          if (way !== 2) network.cut(index, machine.index)
        }
        return
      }
      case 8: {
        cluster.say('the network is split')
        const side = cluster.machines.map(() => chance.below(2))
        return this.cutBetween((a, b) => side[a] !== side[b])
      }
      case 9:
        cluster.say('all links are whole')
        return network.mend()
      case 10:
        cluster.leave(machine)
        return this.startLater(machine, 10_000, false)
    }
  }

  private startLater(machine: Machine, within: number, sameBoot: boolean): void {
    const { cluster } = this
    cluster.after(1 + cluster.chance.float() * within, () => cluster.start(machine, sameBoot))
  }

  private cutBetween(apart: (a: number, b: number) => boolean): void {
    const { machines, network } = this.cluster
    for (const a of machines) {
      for (const b of machines) if (apart(a.index, b.index)) network.cutBoth(a.index, b.index)
    }
  }

  private endTrouble(): void {
    const { cluster } = this
    cluster.say('the trouble ends')
    cluster.network.mend()
    cluster.network.lossShare = 0
    cluster.network.deaf = undefined
    cluster.network.slowShare = 0.01
    this.checkNobodyWronged()
    for (const machine of cluster.machines) {
      cluster.resume(machine)
      if (machine.runs || cluster.chance.below(4) === 0) continue
      cluster.start(machine)
    }
    // Somebody must be there that knows the cluster.
    const knows = cluster.machines.find(({ disk }) => disk.cluster !== undefined)
    if (knows !== undefined) cluster.start(knows)
  }

  // What must be true.

  /** Of courses in which all the while everyone could be reached in some way. */
  private checkNobodyWronged(): void {
    const { cluster, course, size } = this
    const members = (size * TROUBLE_MS) / 1000
    if (course === 'one-link' && cluster.suspicions > 0) {
      cluster.truth.violation('somebody was suspected that others could reach')
    }
    if (course === 'deaf') {
      const [, deaf] = cluster.machines
      const begun = deaf?.swim?.counters.suspicions ?? 0
      if (begun > 7) cluster.truth.violation(`m1 hears little, and suspects others ${begun} times`)
    }
    if (course === 'loss') {
      const begun = cluster.machines.reduce(
        (n, { swim }) => n + (swim?.counters.suspicions ?? 0),
        0,
      )
      if (begun > 3 + 0.03 * members) {
        cluster.truth.violation(`${begun} suspicions in ${members} member seconds of mere loss`)
      }
      if (cluster.held > 0) cluster.truth.violation('somebody was held back for mere loss')
      if (cluster.deaths > 0) cluster.truth.violation('somebody was thought dead for mere loss')
    }
  }

  private checkQuiet(): void {
    const { cluster } = this
    const before = cluster.machines.map(({ packetsSent }) => packetsSent)
    cluster.run(QUIET_MS)
    if (this.course !== 'split') return
    for (const [i, { name, packetsSent }] of cluster.machines.entries()) {
      const rate = (1000 * (packetsSent - (before[i] ?? 0))) / QUIET_MS
      if (rate > QUIET_PACKETS_PER_SECOND) {
        cluster.truth.violation(`${name} sends ${rate} packets per second when nothing is new`)
      }
    }
  }

  private checkAll(when: string): void {
    const { cluster } = this
    if (cluster.truth.violations.length > 0) return
    const there = cluster.machines.filter(({ runs, refused }) => runs && !refused)
    const expected = there.map(({ disk }) => `${disk.node}/${disk.boot}`).sort()
    for (const machine of there) {
      const view = machine.swim?.view()
      const seen = (view?.members ?? []).map(({ member }) => `${member.node}/${member.boot}`)
      const missing = expected.filter((one) => !seen.includes(one))
      const extra = seen.filter((one) => !expected.includes(one))
      if (missing.length > 0 || extra.length > 0) {
        const lists = `misses [${missing.join(' ')}], has [${extra.join(' ')}]`
        cluster.truth.violation(`${when}, ${machine.name} ${lists}`)
      } else if (view?.stableSince === undefined) {
        cluster.truth.violation(`${when}, the view of ${machine.name} is still moving`)
      }
    }
    this.checkHints(there, when)
  }

  private checkHints(there: readonly Machine[], when: string): void {
    const { truth } = this.cluster
    for (let shard = 0; shard < 8; shard++) {
      const terms = there.map(({ swim }) => swim?.leaderOf(shard)?.term ?? 0)
      const newest = Math.max(...terms)
      if (terms.some((term) => term < newest)) {
        truth.violation(`${when}, terms ${terms.join(', ')} are known of shard ${shard}`)
      }
    }
  }

  private lastDeath(): void {
    const { cluster } = this
    const there = cluster.machines.filter(({ runs }) => runs)
    const victim = there[cluster.chance.below(there.length)]
    if (there.length < 2 || victim === undefined) return
    cluster.kill(victim)
    const since = cluster.now
    const { node } = victim.disk
    const knows = ({ swim }: Machine): boolean => swim?.memberOf(node)?.state === 'dead'
    const unaware = (): boolean => there.some((one) => one !== victim && !knows(one))
    for (let steps = 0; unaware() && steps < DETECT_MS / 100; steps++) cluster.run(100)
    this.detectedMs = cluster.now - since
    this.checkAll('after the last death')
  }

  private farewell(): void {
    const { cluster } = this
    const there = cluster.machines.filter(({ runs }) => runs)
    const leaver = there[cluster.chance.below(there.length)]
    if (there.length < 2 || leaver === undefined) return
    const before = cluster.deaths
    cluster.leave(leaver)
    cluster.run(FAREWELL_MS)
    this.checkAll('after the farewell')
    if (cluster.deaths > before) cluster.truth.violation('one that left is thought dead')
  }

  private any(): Machine {
    return this.cluster.machines[this.cluster.chance.below(this.size)] as Machine
  }
}

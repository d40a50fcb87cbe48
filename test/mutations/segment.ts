// What the segments in virtual time (test/core/segment) must find: rules of replication that are broken, in the machines, and in
// what those owe whom they work for.

import type { Mutation } from './storage.ts'

export const SEGMENT_MUTATIONS: readonly Mutation[] = [
  // Replicas.
  {
    name: 'acknowledge before one follower',
    file: 'src/core/segment/leader.js',
    find: 'for (const { acked } of this.following)',
    replace: 'for (const { acked } of this.following.slice(1))',
  },
  {
    name: 'leave a failed follower out of the high watermark',
    file: 'src/core/segment/leader.js',
    find: 'for (const { acked } of this.following)',
    replace: 'for (const { acked } of this.following.filter((one) => one.failure === undefined))',
  },
  {
    name: 'resume after a time-out with an end outstanding',
    file: 'src/core/segment/leader.js',
    find: 'this.wantsCancel = nowMs - this.frozenSinceMs >= timing.frozenTimeoutMs;',
    replace: 'if (nowMs - this.frozenSinceMs >= timing.frozenTimeoutMs) this.goOn();',
  },
  {
    name: 'go on under the attempt that was given',
    file: 'src/core/segment/leader.js',
    find: 'if (news.attempt <= this.attempt)',
    replace: 'if (news.attempt < this.attempt)',
  },
  {
    name: 'accept a gap',
    file: 'src/core/segment/follower.js',
    find: 'if (entryNumber !== next) {',
    replace: 'if (entryNumber < next) {',
  },
  {
    name: 'take entries behind a fence',
    file: 'src/core/segment/follower.js',
    find: 'if (fencedAt !== undefined)\n            return { refuse: `the',
    replace: 'if (false)\n            return { refuse: `the',
    also: [
      {
        file: 'src/core/segment/follower.js',
        find: '!this.fenced && this.sealedAt === undefined,',
        replace: 'true,',
      },
      {
        file: 'src/core/segment/follower.js',
        find: 'return Math.min(this.durableEnd, this.fencedAt ?? this.durableEnd);',
        replace: 'return this.durableEnd;',
      },
    ],
  },
  {
    name: 'answer a fence before earlier entries of the same sync',
    file: 'src/core/segment/follower.js',
    find: 'this.fencedAt ??= this.next;',
    replace: 'this.fencedAt ??= this.next; this.fenceIsDurable = true;',
  },
  {
    name: 'serve above the high watermark',
    file: 'src/core/segment/follower.js',
    find: 'return Math.min(this.heardHighWatermark, this.durableEnd);',
    replace: 'return this.durableEnd;',
  },
  // Leases.
  {
    name: 'accept without a lease',
    file: 'test/core/segment/judge/leading.js',
    find: ' || !process.leased(this.number)',
    replace: '',
  },
  {
    name: 'confirm the lease of a segment that is fenced',
    file: 'test/core/segment/judge/coordinator.js',
    find: 'const withheld = care.withholds && open !== undefined ? [open.segment] : [];',
    replace: 'const withheld = [];',
  },
  {
    name: 'open a successor while the old leader may hold a lease',
    file: 'src/core/segment/open-segment.js',
    find: 'return this.leaderStopped || nowMs - this.confirmedMs >= leaseGraceMs;',
    replace: 'return true;',
  },
  {
    name: 'count an end that was cancelled as given',
    file: 'src/core/segment/open-segment.js',
    find: 'this.attempt = attempt;\n        this.given = undefined;',
    replace: 'this.attempt = attempt;',
  },
  {
    name: 'forget at an election what was confirmed before',
    file: 'src/core/segment/lease-desk.js',
    find: 'led.last.get(node) ?? led.electedAtMs',
    replace: 'led.last.get(node) ?? Number.NEGATIVE_INFINITY',
  },
  {
    name: "act before an entry of the coordinator's own term",
    file: 'test/core/segment/judge/world.js',
    find: 'this.coordinators.push(coordinator);',
    replace: 'this.coordinators.push(coordinator);\n        coordinator.begins();',
  },
  // Ends.
  {
    name: 'skip the fence',
    file: 'test/core/segment/judge/following.js',
    find: 'machine.fence();',
    replace:
      'answer({ boot: process.boot, end: machine.durableEnd, highWatermark: machine.highWatermark, unsure: undefined });\n' +
      '        return;',
  },
  {
    name: 'believe an unsure answer',
    file: 'src/core/segment/fencing.js',
    find: 'if (answer.unsure === undefined && counts(node))',
    replace: 'if (counts(node))',
    also: {
      file: 'src/core/segment/fencing.js',
      find: 'return answer?.unsure === undefined && answer?.end',
      replace: 'return answer?.end',
    },
  },
  {
    name: 'guess the end when nobody answers',
    file: 'src/core/segment/fencing.js',
    find: 'if (end < 0)\n            return undefined;',
    replace: 'if (end < 0)\n            return { end: 0, holders: [...this.replicas] };',
    also: {
      file: 'src/core/segment/fencing.js',
      find: 'return nowMs - first >= timing.fenceWaitMs;',
      replace: 'return nowMs - Math.min(first, this.sinceMs) >= timing.fenceWaitMs;',
    },
  },
  {
    name: 'ignore the attempt',
    file: 'src/core/metadata/segments.js',
    find: 'if (open.attempt !== given.attempt) {',
    replace: 'if (false) {',
  },
  {
    name: 'propose before all have stored state and tail',
    file: 'test/core/segment/judge/staging.js',
    find: 'if (job.missing.size > 0 || job.outcome !== undefined)',
    replace: 'if (job.outcome !== undefined)',
  },
  {
    name: 'take a staged segment for committed',
    file: 'test/core/segment/judge/staging.js',
    find: 'job.report(outcome);',
    replace:
      'job.report(outcome);\n' +
      "        if ('nextOffsets' in outcome) this.process.leading.get(job.order.segment)?.learned({ state: 'sealed', endEntry: job.order.end });",
  },
  // Sealed segments.
  {
    name: 'settle when one replica is whole',
    file: 'src/core/segment/sealed-care.js',
    find: 'staying.every((node) => whole.includes(node))',
    replace: 'whole.length > 0',
  },
  {
    name: "drop the old replica before the new one's proof",
    file: 'src/core/segment/sealed-care.js',
    find: 'const proven = staying.filter((node) => candidates.alive(node) && this.proven(node, nowMs));',
    replace: 'const proven = staying;',
  },
  // Restarts.
  {
    name: 'resume an open segment after a restart',
    file: 'test/core/segment/judge/process.js',
    find: "if (token === '' && this.boot > 1)",
    replace: 'if (false)',
    also: {
      file: 'test/core/segment/judge/process.js',
      find: 'for (const number of this.broker.disk.segments.keys())\n            this.fromBefore(number);',
      replace: '',
    },
  },
  {
    name: 'open what was staged before a restart',
    file: 'test/core/segment/judge/process.js',
    find: '(staged === undefined || staged.boot !== this.boot)',
    replace: '(staged === undefined)',
  },
]

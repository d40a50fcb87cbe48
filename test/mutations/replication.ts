// What the simulator of replicated records must find: rules of PROTOCOLS §4 and §5 that are broken in whole brokers.

import type { Mutation } from './storage.ts'

export const REPLICATION_MUTATIONS: readonly Mutation[] = [
  // Replicas.
  {
    name: 'acknowledge before one follower',
    file: 'src/core/segment/leader.js',
    find: 'for (const { acked } of this.following)',
    replace: 'for (const { acked } of this.following.slice(1))',
  },
  {
    name: 'accept a gap',
    file: 'src/core/segment/follower.js',
    find: 'if (entryNumber !== next) {',
    replace: 'if (entryNumber < next) {',
    also: [
      {
        file: 'src/broker/range/follower.js',
        find: 'if (baseOffset !== next) {',
        replace: 'if (false) {',
      },
      // Nobody sends one unless it goes on elsewhere than the follower said.
      {
        file: 'src/broker/replica/outgoing.js',
        find: 'this.next = next;',
        replace: 'this.next = this.end;',
      },
    ],
  },
  {
    name: 'serve above the high watermark',
    file: 'src/core/segment/follower.js',
    find: 'return Math.min(this.heardHighWatermark, this.durableEnd);',
    replace: 'return this.durableEnd;',
  },
  {
    name: 'a follower that answers out of range',
    file: 'src/broker/read/cursor.js',
    find: 'if (this.offset <= end || !this.knowsTheEnd || this.mayBeSealed)',
    replace: 'if (this.offset <= end)',
  },
  {
    name: 'accept without a lease',
    file: 'src/broker/range/leader.js',
    find: 'if (!context.leased(copy.key))\n            return false;',
    replace: '',
  },
  {
    name: 'resume after a time-out with an end outstanding',
    file: 'src/core/segment/leader.js',
    find: 'this.wantsCancel = nowMs - this.frozenSinceMs >= timing.frozenTimeoutMs;',
    replace: 'if (nowMs - this.frozenSinceMs >= timing.frozenTimeoutMs) this.goOn();',
  },
  // Fences.
  {
    name: 'skip the fence',
    file: 'src/broker/replica/replicas.js',
    find: 'await fenceLive(copy);',
    replace: '',
  },
  {
    name: 'fence in memory only',
    file: 'src/broker/replica/replicas.js',
    find: 'await copy.openLog().fence();',
    replace: '',
  },
  {
    name: 'answer a fence before earlier entries of the same sync',
    file: 'src/broker/replica/replicas.js',
    find: 'await copy.openLog().fence();',
    replace: 'void copy.openLog().fence();',
    also: {
      file: 'src/broker/replica/replicas.js',
      find: 'end: log?.durableEnd ?? 0,',
      replace: 'end: log?.end ?? 0,',
    },
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
    name: "let an answer outlive its sender's boot",
    file: 'src/core/segment/fencing.js',
    find: 'if (held === undefined || held.answer.boot >= boot)\n            return;',
    replace: 'return;',
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
  // Ends.
  {
    name: 'seal below a reported high watermark',
    file: 'src/core/segment/report.js',
    find: 'export function isDamaged(',
    replace: 'export function isDamaged() { return false; }\nexport function wasDamaged(',
  },
  {
    name: 'count an end whose tail is on too few disks',
    file: 'src/broker/replica/stager.js',
    find: 'await Promise.all(stored)',
    replace: '[await stored[0]]',
  },
  {
    name: 'take a staged segment for committed',
    file: 'src/broker/replica/stager.js',
    find: 'job.outcome = await this.outcome(job);',
    replace:
      'job.outcome = await this.outcome(job);\n' +
      "        if ('nextOffsets' in job.outcome && this.wanted(job)) {\n" +
      "            job.copy.role.segment?.learned?.({ state: 'sealed', endEntry: job.order.end });\n" +
      '            job.copy.role.moved?.();\n' +
      '        }',
  },
  {
    name: 'ignore the attempt',
    file: 'src/core/metadata/segments.js',
    find: 'if (open.attempt !== given.attempt) {',
    replace: 'if (false) {',
  },
  {
    name: "a new coordinator that acts before its own term's entry",
    file: 'src/broker/shards/memberships.js',
    find: 'this.host.copyOf(shard).appliedTerm === raft.term ? raft.term : undefined',
    replace: 'raft.term',
  },
  {
    name: 'drop the old replica before the proof of the new one',
    file: 'src/core/segment/sealed-care.js',
    find: 'const proven = staying.filter((node) => candidates.alive(node) && this.proven(node, nowMs));',
    replace: 'const proven = staying;',
  },
  {
    name: 'ignore which replicas a change was right for',
    file: 'src/core/metadata/segments.js',
    find: 'if (seen.length > 0 && seen.join() !== segment.replicas.join()) {',
    replace: 'if (false) {',
  },
  // Restarts.
  {
    name: 'answer from recovery before it is durable',
    file: 'src/storage/segment/writer.js',
    find: 'this.unconfirmed = unconfirmed;',
    replace: 'this.unconfirmed = false;',
  },
  {
    name: 'resume an open segment after a restart',
    file: 'src/broker/range/copy.js',
    find: 'this.fenced = fenced || context.store.find(this.key) !== undefined;',
    replace: 'this.fenced = false;',
  },
]

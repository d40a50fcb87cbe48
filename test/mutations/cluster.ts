// What the cluster simulator must find: each something that src/broker/shards and what lies under it do, done nearly right.

import type { Mutation } from './storage.ts'

export const CLUSTER_MUTATIONS: readonly Mutation[] = [
  {
    name: 'describe from the own copy without asking the leader',
    file: 'src/broker/shards/shards.js',
    find: 'return this.reads.fresh(shard);',
    replace: 'return Promise.resolve();',
  },
  {
    name: 'answer a proposal when it is accepted, with the result it should have',
    file: 'src/broker/shards/shards.js',
    find: 'this.leaders.note(shard, message.leader);\n                return this.proposals.answered(message);',
    replace:
      'this.leaders.note(shard, message.leader);\n' +
      'if (message.refusal === undefined) {\n' +
      '  const id = proposalId(this.proposer, message.number);\n' +
      '  const pending = this.proposals.pending.get(id);\n' +
      '  if (pending === undefined) return undefined;\n' +
      '  const state = decodeSnapshot(encodeSnapshot(this.copyOf(shard).state));\n' +
      '  const { result } = apply(state, decodeCommand(pending.command), state.appliedIndex + 1);\n' +
      '  return this.proposals.applied(id, result);\n' +
      '}\n' +
      'return this.proposals.answered(message);',
    also: {
      file: 'src/broker/shards/shards.js',
      find: "import { ShardCopy } from './copy.js';",
      replace:
        "import { ShardCopy } from './copy.js';\n" +
        "import { decodeCommand } from '../../core/metadata/command-codec.js';\n" +
        "import { apply } from '../../core/metadata/machine.js';\n" +
        "import { decodeSnapshot, encodeSnapshot } from '../../core/metadata/snapshot.js';",
    },
  },
  {
    name: "answer a proposal with another's result",
    file: 'src/broker/shards/proposals.js',
    find: 'const pending = this.pending.get(id);\n        if (pending === undefined)\n            return;\n        this.forget(id);',
    replace:
      'id = [...this.pending.keys()].find((one) => one !== id) ?? id;\n' +
      '        const pending = this.pending.get(id);\n        if (pending === undefined)\n            return;\n        this.forget(id);',
  },
  {
    name: 'take a proposal twice',
    file: 'src/broker/shards/accepted.js',
    find: 'return number < one.below || one.taken.has(number);',
    replace: 'return false;',
  },
  {
    name: 'offer again in a later term before the outcome is known',
    file: 'src/broker/shards/proposals.js',
    find: 'if (offered.term !== leader.term || offered.taken)',
    replace:
      'if (offered.term !== leader.term) pending.offered = { term: leader.term, times: 1, taken: false };\n' +
      '            else if (offered.taken)',
  },
  {
    name: 'feed entries that have not committed',
    file: 'src/broker/shards/memberships.js',
    find: 'replica.raft.appliedIndex, request',
    replace: 'replica.raft.log.lastIndex, request',
    also: {
      file: 'src/broker/shards/memberships.js',
      find: 'advanced(replica, raft.appliedIndex, this.now)',
      replace: 'advanced(replica, raft.log.lastIndex, this.now)',
    },
  },
  {
    name: 'apply a feed that leaves a gap',
    file: 'src/broker/shards/feed-follower.js',
    find: 'if (first > copy.appliedIndex + 1)',
    replace: 'if (false)',
  },
  {
    name: "forget the term and the vote in a shard's snapshot",
    file: 'src/broker/shards/records.js',
    find: 'hardState = read.hardState;',
    replace: '',
  },
  {
    name: 'do not write the entries behind a snapshot again',
    file: 'src/broker/shards/replica.js',
    find: 'this.append(rest);\n            return',
    replace: 'return',
  },
  {
    name: 'install a snapshot that is older than the copy',
    file: 'src/broker/shards/copy.js',
    find: 'if (index <= this.appliedIndex)\n            return;',
    replace: '',
  },
  {
    name: 'release what an idle shard has in the journal only',
    file: 'src/storage/journal/journal.js',
    find: 'needed = Math.min(needed, shard.first);',
    replace: 'if (shard.last + 20 > this.next) needed = Math.min(needed, shard.first);',
  },
]

/** What brokers tell one another is not looked at in that simulator; where it is, brokers have no clients. */
export const SHARDS_MUTATIONS: readonly Mutation[] = [
  {
    name: 'send before the journal is synced',
    file: 'src/broker/shards/turns.js',
    find: 'replica.busy = true;',
    replace: 'this.say(replica, effects.messagesAfterSync);\n            replica.busy = true;',
  },
]

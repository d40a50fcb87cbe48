// What the Raft group in virtual time (test/core/raft) must find: each a rule of Raft that is broken.

import type { Mutation } from './storage.ts'

export const RAFT_MUTATIONS: readonly Mutation[] = [
  {
    name: 'vote twice in a term',
    file: 'src/core/raft/raft.js',
    find: 'this.vote === undefined || this.vote === from',
    replace: 'true',
  },
  {
    name: 'forget the vote after a restart',
    file: 'src/core/raft/raft.js',
    find: 'this.vote = restored.hardState.vote;',
    replace: '',
  },
  {
    name: 'vote right after a restart',
    file: 'src/core/raft/raft.js',
    find: 'this.heardAt = now;\n        this.waitForLeader();\n        // Nobody',
    replace:
      'this.heardAt = Number.NEGATIVE_INFINITY;\n        this.waitForLeader();\n        // Nobody',
  },
  {
    name: "commit by counting an older term's entries",
    file: 'src/core/raft/leading.js',
    find: ' || log.term(index) !== term',
    replace: '',
  },
  {
    name: 'acknowledge before the sync',
    file: 'src/core/raft/raft.js',
    find: 'this.answerAfterSync(from, round, { ok: true, match });\n    }\n    cutOff',
    replace: 'this.answer(from, round, { ok: true, match });\n    }\n    cutOff',
  },
  {
    name: 'apply past the commit',
    file: 'src/core/raft/raft.js',
    find: 'const to = Math.min(this.commit, this.synced);',
    replace: 'const to = this.synced;',
  },
  {
    name: 'count a learner in the quorum',
    file: 'src/core/raft/members.js',
    find: 'const values = members.voters.map(valueOf)',
    replace: 'const values = [...members.voters, ...members.learners].map(valueOf)',
  },
  {
    name: 'change membership before an entry of the own term',
    file: 'src/core/raft/leading.js',
    find: "if (!this.termBegun)\n            return 'term-not-begun';",
    replace: '',
  },
  {
    name: 'serve a read from a leader whose lease ran out',
    file: 'src/core/raft/leading.js',
    find: 'return now - this.quorumRoundBegan() < lease;',
    replace: 'return true;',
  },
  {
    name: 'keep leading after handing over',
    file: 'src/core/raft/leading.js',
    find: 'nothing more is answered from here.\n        this.host.stepDown();',
    replace: 'nothing more is answered from here.\n        this.transfer = undefined;',
  },
  {
    name: 'install a snapshot without its membership',
    file: 'src/core/raft/log.js',
    find: 'this.history = [{ index: snapshot.index, members: snapshot.members }];',
    replace: 'this.history = [{ index: snapshot.index, members: this.members }];',
  },
  {
    name: 'drop what follows a snapshot that the log agrees with',
    file: 'src/core/raft/raft.js',
    find: 'if (this.log.term(index) === snapshotTerm)\n            this.commitTo(index);',
    replace: '',
  },
  {
    name: 'change members again before the last change has committed',
    file: 'src/core/raft/leading.js',
    find: "if (log.membersIndex > commit)\n            return 'change-under-way';",
    replace: '',
  },
  {
    name: 'promote a learner that lags',
    file: 'src/core/raft/leading.js',
    find: 'if (!this.caughtUp(node))\n            return false;',
    replace: '',
  },
  {
    name: 'promote the first learner of a lone voter when no second has caught up',
    file: 'src/core/raft/leading.js',
    find: 'voters.length > 1 ||',
    replace: 'true ||',
  },
  {
    name: 'skip stickiness',
    file: 'src/core/raft/raft.js',
    find: 'return this.now - this.heardAt < this.options.electionTimeoutMs && !this.isLone();',
    replace: 'return false;',
  },
  {
    name: 'skip pre-vote with stickiness off',
    file: 'src/core/raft/raft.js',
    find: 'return this.now - this.heardAt < this.options.electionTimeoutMs && !this.isLone();',
    replace: 'return false;',
    also: {
      file: 'src/core/raft/raft.js',
      find: "this.campaign('pre-candidate', false);",
      replace: "this.campaign('candidate', false);",
    },
  },
  {
    name: 'keep leading without a quorum',
    file: 'src/core/raft/leading.js',
    find: 'if (now - this.quorumRoundBegan() >= electionTimeoutMs && !this.alone()) {',
    replace: 'if (false) {',
  },
  {
    name: 'read before an entry of the own term has committed',
    file: 'src/core/raft/leading.js',
    find: 'if (this.termBegun && this.holdsLease(this.host.now)) {',
    replace: 'if (this.holdsLease(this.host.now)) {',
  },
  {
    name: 'let a lone voter answer a read before an entry of its own term',
    file: 'src/core/raft/leading.js',
    find: 'if (this.termBegun && this.holdsLease(this.host.now)) {',
    replace: 'if ((this.termBegun || this.alone()) && this.holdsLease(this.host.now)) {',
  },
  {
    name: 'vote not when it is asked but when it is a voter',
    file: 'src/core/raft/raft.js',
    find: 'const { from, pre, term, transfer, lastIndex, lastTerm } = message;',
    replace:
      'const { from, pre, term, transfer, lastIndex, lastTerm } = message;\n' +
      '        if (!isVoter(this.members, this.id)) return;',
  },
  {
    name: 'delete the term and the vote of a removed member',
    file: 'test/core/raft/driver.js',
    find: 'return raft.remains;',
    replace: 'return { ...raft.remains, term: 0, vote: undefined };',
  },
  {
    name: 'forget where the log of a removed member ended',
    file: 'test/core/raft/driver.js',
    find: 'return raft.remains;',
    replace: 'return { ...raft.remains, deletedUpTo: undefined };',
  },
  {
    name: 'a wiped disk that votes',
    file: 'test/core/raft/driver.js',
    find: 'this.disk = emptyDisk(another, NOBODY);',
    replace: 'this.disk = emptyDisk(this.disk.member, NOBODY);',
  },
  {
    name: 'answer a proposal by log position',
    file: 'test/core/raft/driver.js',
    find: "return payload.kind === 'command' && waiting.has(payload.id) ? payload.id : undefined;",
    replace: 'return [...waiting].find(([, index]) => index === at)?.[0];',
  },
]

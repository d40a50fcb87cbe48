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
    find: 'this.answer(this.outAfterSync, from, round, { ok: true, match });\n    }\n    cutOff',
    replace: 'this.answer(this.out, from, round, { ok: true, match });\n    }\n    cutOff',
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
    find: 'return this.host.now - this.quorumRoundBegan() < lease;',
    replace: 'return true;',
  },
  {
    name: 'keep leading after handing over',
    file: 'src/core/raft/leading.js',
    find: 'this.host.stepDown();\n    }\n    /** Its own removal',
    replace: 'this.transfer = undefined;\n    }\n    /** Its own removal',
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
    find: "if (change.kind === 'promote' && !this.caughtUp(change.node))",
    replace: 'if (false)',
  },
]

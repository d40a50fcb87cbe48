// What the simulator of members that come and go must find: rules of membership, of the ring and of whoever follows it.

import type { Mutation } from './storage.ts'

export const MEMBERSHIP_MUTATIONS: readonly Mutation[] = [
  {
    name: 'act on an unstable ring',
    file: 'src/broker/shards/keeper.js',
    find: 'if (stableSince === undefined || now - stableSince < stableMs)\n            return;',
    replace: '',
    also: {
      file: 'src/broker/shards/keeper.js',
      find: "this.knows !== 'yes' || this.mayStillCome(now)",
      replace: 'false',
    },
  },
  {
    name: 'take those for gone who have not come yet',
    file: 'src/broker/shards/keeper.js',
    find: "this.knows !== 'yes' || this.mayStillCome(now)",
    replace: "this.knows !== 'yes'",
  },
  {
    name: 'make a learner that lags a voter',
    file: 'src/core/raft/leading.js',
    find: 'if (!this.caughtUp(node))\n            return false;',
    replace: '',
  },
  {
    name: 'leave the removed where they are',
    file: 'src/broker/shards/keeper.js',
    find: "gone: (node) => (nodes.get(node)?.role ?? 'member') !== 'member',",
    replace: 'gone: () => false,',
    also: {
      file: 'src/broker/shards/keeper.js',
      find: "return !late && nodes.get(broker.node)?.role === 'member';",
      replace: 'return !late;',
    },
  },
  {
    name: 'never look for the dead again',
    file: 'src/core/swim/probing.js',
    find: 'if (host.now < known.probeAt)',
    replace: 'if (true)',
  },
  {
    name: 'let a suspicion stand',
    file: 'src/core/swim/membership.js',
    find: 'this.raise(member.incarnation, {});',
    replace: '',
  },
  {
    name: 'believe an older incarnation',
    file: 'src/core/swim/order.js',
    find: 'a.incarnation - b.incarnation || RANK[a.state] - RANK[b.state]',
    replace: 'RANK[a.state] - RANK[b.state] || a.incarnation - b.incarnation',
  },
]

// What the cluster in virtual time (test/core/swim) must find: each a rule of SWIM, of Lifeguard or of PROTOCOLS §10 that is
// broken.

import type { Mutation } from './storage.ts'

export const SWIM_MUTATIONS: readonly Mutation[] = [
  {
    name: 'drop the refutation',
    file: 'src/core/swim/membership.js',
    find: 'this.raise(member.incarnation, {});',
    replace: '',
  },
  {
    name: 'accept a stale incarnation',
    file: 'src/core/swim/order.js',
    find: 'a.incarnation - b.incarnation || RANK[a.state] - RANK[b.state]',
    replace: 'RANK[a.state] - RANK[b.state] || a.incarnation - b.incarnation',
  },
  {
    name: 'believe whatever was said last of one life',
    file: 'src/core/swim/membership.js',
    find: 'if (order < 0)\n            return;',
    replace: 'if (order < 0 && compareLives(member, known.member) !== 0)\n            return;',
  },
  {
    name: 'never probe the dead again',
    file: 'src/core/swim/probing.js',
    find: 'if (host.now < known.probeAt)',
    replace: 'if (true)',
  },
  {
    name: 'ignore the boot count',
    file: 'src/core/swim/order.js',
    find: 'return a.boot - b.boot || a.nonce - b.nonce;',
    replace: 'return 0;',
  },
  {
    name: 'let two starts claim one boot count',
    file: 'src/core/swim/order.js',
    find: 'a.boot - b.boot || a.nonce - b.nonce',
    replace: 'a.boot - b.boot',
  },
  {
    name: 'no indirect probes',
    file: 'src/core/swim/probing.js',
    find: '.slice(0, host.options.settings.helpers)',
    replace: '.slice(0, 0)',
  },
  {
    name: 'keep a suspicion from the suspect',
    file: 'src/core/swim/swim.js',
    find: "member.state === 'suspect' || member.state === 'dead'",
    replace: 'false',
  },
  {
    name: 'never shorten a suspicion that others confirm',
    file: 'src/core/swim/membership.js',
    find: 'Math.max(0, suspectedBy.length - 1)',
    replace: '0',
  },
  {
    name: 'never end a suspicion',
    file: 'src/core/swim/membership.js',
    find: 'if (now >= this.diesAt(known))',
    replace: 'if (false)',
  },
  {
    name: 'accuse others of the own sleep',
    file: 'src/core/swim/swim.js',
    find: 'this.probing.shift(late);\n        this.membership.shift(late);',
    replace: '',
  },
  {
    name: 'wait no longer when nobody answers',
    file: 'src/core/swim/health.js',
    find: 'Math.min(WORST, this.score + by)',
    replace: '0',
  },
  {
    name: 'take for dead whom the other part of the cluster thinks dead',
    file: 'src/core/swim/membership.js',
    find: "member.state === 'dead' && reporter !== undefined",
    replace: 'false',
  },
  {
    name: 'leave without a word',
    file: 'src/core/swim/swim.js',
    find: 'FAREWELLS_MAX : gossipTargets',
    replace: '0 : gossipTargets',
    also: {
      file: 'src/core/swim/swim.js',
      find: 'this.leavesAt = now + this.options.settings.leaveMs;',
      replace: 'this.leavesAt = now;',
    },
  },
  {
    name: 'pack more than fits',
    file: 'src/core/swim/gossip.js',
    find: 'bytes > room || count === UPDATES_MAX',
    replace: 'count === UPDATES_MAX',
  },
  {
    name: 'tell news for ever',
    file: 'src/core/swim/gossip.js',
    find: 'if (rumour.told >= times)',
    replace: 'if (false)',
  },
  {
    name: 'take an older term for news',
    file: 'src/core/swim/swim.js',
    find: 'known.term >= hint.term',
    replace: 'known.term === hint.term',
  },
]

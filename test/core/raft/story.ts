// Raft's messages as lines of a dialogue.

import type { NodeId } from '../../../src/model/ids.ts'
import type { Entry, Members, Message } from '../../../src/model/raft.ts'

/** Members are numbered; their names here are letters. */
export function memberId(number: number): NodeId {
  return number.toString(16).padStart(32, '0') as NodeId
}

export function name(id: NodeId): string {
  const number = Number.parseInt(id, 16)
  const letter = String.fromCharCode(65 + (number % 26))
  return number < 26 ? letter : `${letter}${Math.floor(number / 26)}`
}

export function describeMembers({ voters, learners }: Members): string {
  const and = learners.length === 0 ? '' : ` and learners ${learners.map(name).join(' ')}`
  return `${voters.map(name).join(' ')}${and}`
}

/** As in "3..5 (terms 1 1 2)". */
export function describeEntries(entries: readonly Entry[]): string {
  const [first, last] = [entries[0], entries.at(-1)]
  if (first === undefined || last === undefined) return 'nothing'
  const range = first === last ? `${first.index}` : `${first.index}..${last.index}`
  const terms = [...new Set(entries.map(({ term }) => term))]
  return `${range} of term ${terms.join(' and ')}`
}

export function describe(message: Message): string {
  return `${name(message.from)} -> ${name(message.to)}  ${words(message)}`
}

function words(message: Message): string {
  const { term } = message
  switch (message.kind) {
    case 'vote': {
      const what = message.pre ? 'would you vote for me' : 'vote for me'
      const asked = message.transfer ? ', the leader asks for it' : ''
      return `${what} in term ${term}? my log ends with ${message.lastIndex}/${message.lastTerm}${asked}`
    }
    case 'vote-answer': {
      const what = message.pre ? 'would vote' : 'vote'
      return message.granted ? `${what} for you in term ${term}` : `no ${what}; term ${term}`
    }
    case 'append': {
      const { entries, prevIndex, prevTerm, commit, round } = message
      const after = `after ${prevIndex}/${prevTerm}, commit ${commit}`
      return `append ${describeEntries(entries)} ${after}; term ${term} round ${round}`
    }
    case 'heartbeat':
      return `heartbeat, commit ${message.commit}; term ${term} round ${message.round}`
    case 'append-answer': {
      const { result, round } = message
      const end = `; term ${term} round ${round}`
      if (!result.ok) {
        return `nothing at ${result.prevIndex}, perhaps ${result.hintIndex}/${result.hintTerm}${end}`
      }
      return result.match === undefined ? `heard${end}` : `have all up to ${result.match}${end}`
    }
    case 'snapshot': {
      const { index, snapshotTerm, offset, bytes, totalBytes, members, round } = message
      const part = `bytes ${offset}..${offset + bytes.length} of ${totalBytes}`
      const what = `snapshot after ${index}/${snapshotTerm} (${describeMembers(members)}), ${part}`
      return `${what}; term ${term} round ${round}`
    }
    case 'snapshot-answer':
      return `snapshot after ${message.index}: go on from byte ${message.offset}; round ${message.round}`
    case 'timeout-now':
      return `take over from term ${term}`
  }
}
